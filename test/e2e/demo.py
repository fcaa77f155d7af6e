"""The main job on real change events: what `./dev demo` runs.

Starts a server on a fresh home, lands the captured events of a PostgreSQL database, merges them
into Iceberg tables, and reads the result: with tarn, as of an earlier time, and with PyIceberg and
DuckDB from outside.
"""

import argparse
import pathlib
import sys
import tempfile
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from foreign import read_with_duckdb, read_with_pyiceberg  # noqa: E402
from server import DATA, Server  # noqa: E402

EVENTS = DATA / "debezium"

PIPELINE = f"""\
pipeline: shop
sources:
  captured:
    type: files
    uri: {EVENTS.as_uri()}
landing:
  customer_events:
    source: captured
    paths: ["pg_schema_envelope.jsonl"]
    content: {{type: json, envelope: debezium, tables: ["shop.customers"]}}
  item_events:
    source: captured
    paths: ["pg_schema_envelope.jsonl"]
    content: {{type: json, envelope: debezium, tables: ["shop.order_items"]}}
transform:
  customers:
    from: customer_events
    key: [id]
    history: true
  order_items:
    from: item_events
    key: [order_id, line_no]
"""


def say(text=""):
    print(text, flush=True)


def section(number, title, explanation):
    say()
    say(f"{number}. {title}")
    say(textwrap.fill(explanation, 98, initial_indent="   ", subsequent_indent="   "))
    say()


def show(text):
    say(textwrap.indent(text.rstrip(), "   "))


def show_rows(rows):
    """Rows from a foreign reader, one per line."""
    for row in rows:
        show("  ".join(f"{name}={value}" for name, value in row.items()))


def run(server):
    folder = server.home.parent
    file = folder / "shop.yaml"
    file.write_text(PIPELINE)
    section(1, "A pipeline file", "Two landing tasks read captured Debezium events; two transform "
            "tasks merge them by key into Iceberg tables.")
    show(PIPELINE)
    section(2, "tarn run shop.yaml --once", "Drains the sources, appends what landed, merges.")
    server.run("run", str(file), "--once")
    show(server.run("status"))
    section(3, "The current view", "One row per live customer: customer 1 became 10 in the "
            "source, column email was renamed to mail on the way.")
    show(server.run("sql", "SELECT * FROM customers.customers ORDER BY id"))
    section(4, "The history view", "Every version with the interval in which it was true.")
    show(server.run("sql", "SELECT id, email, hdr__operation AS op, hdr__store AS store, "
                    "hdr__from_timestamp AS valid_from, hdr__to_timestamp AS valid_to "
                    "FROM customers.customers__history ORDER BY valid_from, id"))
    first = server.sql("SELECT min(hdr__from_timestamp) AS t FROM customers.customers__history")
    moment = first[0]["t"]
    section(5, "As of an earlier time", f"The customers as they were in the source at {moment}, "
            "from the history view.")
    show(server.run("sql", "SELECT id, email FROM customers.customers__history WHERE "
                    f"hdr__from_timestamp <= TIMESTAMPTZ '{moment}' AND (hdr__to_timestamp IS NULL "
                    f"OR hdr__to_timestamp > TIMESTAMPTZ '{moment}') ORDER BY id"))
    section(6, "PyIceberg reads customers.customers__applied", "Unmodified, through the REST "
            "catalog; the published table has the user columns only.")
    show_rows(sorted(read_with_pyiceberg(server, "customers.customers__applied"),
                     key=lambda row: row["id"]))
    section(7, "DuckDB reads order_items.order_items__applied", "Unmodified, with its Iceberg "
            "extension.")
    show_rows(sorted(read_with_duckdb(server, "order_items.order_items__applied"),
                     key=lambda row: (row["order_id"], row["line_no"])))
    section(8, "Connect yourself", "While a server runs:")
    show(f"catalog     {server.url}/iceberg      (Iceberg REST, bearer token)")
    show(f"token       {server.home}/admin-token")
    show("SQL         tarn sql \"SELECT …\"")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the server running")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="tarn-demo-")
    server = Server(pathlib.Path(folder) / "home").start()
    try:
        run(server)
        if arguments.keep:
            say(f"\nThe server goes on as process {server.process.pid}; its home is {server.home}")
            return
        server.stop()
    except BaseException:
        server.kill()
        raise
    import shutil
    shutil.rmtree(folder)
    say("\nDone; the server was stopped and its home removed. Keep it with ./dev demo --keep")


if __name__ == "__main__":
    main()
