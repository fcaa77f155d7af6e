"""A Kafka topic becomes an Iceberg table that is queried while it grows: `./dev demo --kafka`.

Starts a broker and a server on fresh folders, sends orders, and shows the table through updates,
deletes, a broken message and a killed server; then reads it with PyIceberg and DuckDB.
"""

import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from demo import say, section, show, show_rows  # noqa: E402
from foreign import read_with_duckdb, read_with_pyiceberg  # noqa: E402
from kafka_broker import Broker  # noqa: E402
from server import CommandFailed, Server, wait_for  # noqa: E402

TOPIC = "shop.orders"
SECONDS = 6
PER_SECOND = 2000

PIPELINE = """\
pipeline: shop
sources:
  bus:
    type: kafka
    brokers: ["{address}"]
landing:
  order_events:
    source: bus
    topics: ["shop.orders"]
    key_columns: {{format: string, names: [order_no]}}
    commit: {{interval: 500ms}}
transform:
  orders:
    from: order_events
    key: [order_no]
    history: true
"""

FIRST = [("A-1", {"customer": "Ada", "state": "new", "amount": 120.50}),
         ("A-2", {"customer": "Bob", "state": "new", "amount": 9.99}),
         ("A-3", {"customer": "Cy", "state": "new", "amount": 45.00})]
LATER = [("A-1", {"customer": "Ada", "state": "paid", "amount": 120.50}),
         ("A-3", None)]

ORDERS = "SELECT order_no, customer, state, amount FROM orders.orders ORDER BY order_no"
TOTALS = ("SELECT count(*) AS orders, round(sum(amount), 2) AS amount, "
          "max(order_no) AS newest FROM orders.orders")


class Shop:
    """Sends orders, and knows how many messages it sent."""

    def __init__(self, broker):
        self.sender = broker.producer()
        self.sent = 0

    def send(self, orders):
        for number, order in orders:
            value = None if order is None else json.dumps(order)
            self.sender.send(TOPIC, value, key=number)
            self.sent += 1
        self.sender.flush()

    def keep_sending(self, seconds):
        """New orders at a steady rate."""
        for turn in range(seconds * 10):
            begin = time.monotonic()
            self.send((f"B-{turn * PER_SECOND // 10 + i:06}",
                       {"customer": f"customer {i}", "state": "new", "amount": (i % 50) + 0.5})
                      for i in range(PER_SECOND // 10))
            time.sleep(max(0.0, begin + 0.1 - time.monotonic()))


def landed(server):
    return server.sql("SELECT count(*) AS c FROM landing.order_events")[0]["c"]


def wait_for_orders(server, count):
    """The first orders make the table; until then it cannot be queried."""
    def are_there():
        try:
            return len(server.sql("SELECT order_no FROM orders.orders")) == count
        except CommandFailed:
            return False
    wait_for(are_there)


def show_first_orders(server, shop):
    section(3, "Three orders", "The key of a message is the order's number, its value is JSON.")
    shop.send(FIRST)
    for number, order in FIRST:
        show(f"{number}  {json.dumps(order)}")
    wait_for_orders(server, 3)
    say()
    show(server.run("sql", ORDERS))
    section(4, "An update and a delete", "A message with the same key replaces the row; one "
            "without a value (a tombstone) deletes it. The history view keeps every version.")
    shop.send(LATER)
    for number, order in LATER:
        show(f"{number}  {json.dumps(order)}")
    wait_for_orders(server, 2)
    say()
    show(server.run("sql", ORDERS))
    say()
    show(server.run("sql", "SELECT order_no, state, hdr__operation AS op, hdr__store AS store "
                    "FROM orders.orders__history ORDER BY order_no, hdr__from_timestamp, op DESC"))


def show_growth(server, shop):
    section(5, f"Queries while {PER_SECOND} orders a second arrive", "Each line is one query of "
            "the current view. What was committed is visible at once, before it is merged.")
    sending = threading.Thread(target=shop.keep_sending, args=(SECONDS,))
    sending.start()
    begin = time.monotonic()
    while sending.is_alive():
        row = server.sql(TOTALS)[0]
        show(f"{time.monotonic() - begin:4.1f} s   {row['orders']:6} orders   amount "
             f"{row['amount']:>10}   newest {row['newest']}")
        time.sleep(1)
    sending.join()
    wait_for(lambda: landed(server) == shop.sent)
    row = server.sql(TOTALS)[0]
    show(f"all of them: {row['orders']} orders, amount {row['amount']}")
    say()
    show(server.run("status"))


def show_trouble(server, shop):
    section(6, "A broken message", "It stops nothing: it is kept, with its place and the reason.")
    shop.sender.send(TOPIC, '{"customer": "Dan", "state": ', key="A-4")
    shop.sender.flush()
    letters = ("SELECT source, \"position\", error_code, error_text "
               "FROM landing.order_events__rejected")
    wait_for(lambda: rows_or_none(server, letters))
    show(server.run("sql", letters))
    section(7, "kill -9 while messages arrive", "The positions in the topic are stored in the "
            "transaction that commits the rows, so a server that starts again neither loses nor "
            "repeats a message.")
    sending = threading.Thread(target=shop.keep_sending, args=(3,))
    sending.start()
    time.sleep(1.3)
    server.kill()
    show("the server was killed")
    server.start()
    show("the server runs again, and its tasks with it")
    sending.join()
    wait_for(lambda: landed(server) == shop.sent)
    show(f"{shop.sent} messages were sent, {landed(server)} rows have landed")


def rows_or_none(server, query):
    """Rows of what may not be there yet."""
    try:
        return server.sql(query)
    except CommandFailed:
        return None


def show_readers(server, broker):
    section(8, "Other engines", "PyIceberg and DuckDB, unmodified, through the Iceberg REST "
            "catalog. They read orders.orders__applied, the table as of the last merge.")
    server.run("task", "apply", "shop.orders")
    for name, read in (("PyIceberg", read_with_pyiceberg), ("DuckDB", read_with_duckdb)):
        rows = sorted(read(server, "orders.orders__applied"), key=lambda row: row["order_no"])
        show(f"{name}: {len(rows)} orders, of which")
        show_rows(rows[:2])
    section(9, "Connect yourself", "While broker and server run:")
    show(f"broker      {broker.address}, topic {TOPIC}")
    show(f"catalog     {server.url}/iceberg      (Iceberg REST, bearer token)")
    show(f"token       {server.home}/admin-token")
    show(f"SQL         build/release/tarn sql --url {server.url} --home {server.home} \\\n"
         "                \"SELECT * FROM orders.orders LIMIT 5\"")


def run(server, broker):
    file = server.home.parent / "orders.yaml"
    section(1, f"A broker, and a topic {TOPIC} with four partitions",
            "Apache Kafka, started for this demo.")
    broker.create_topic(TOPIC, 4)
    show(broker.address)
    section(2, "A pipeline file", "A landing task reads the topic into a versioned dataset; a "
            "transform task merges it by key into an Iceberg table. `tarn run orders.yaml` starts "
            "both; they go on in the server until they are stopped.")
    file.write_text(PIPELINE.format(address=broker.address))
    show(file.read_text())
    server.run("pipeline", "apply", str(file))
    for task in ("shop.order_events", "shop.orders"):
        server.run("task", "start", task)
    shop = Shop(broker)
    show_first_orders(server, shop)
    show_growth(server, shop)
    show_trouble(server, shop)
    show_readers(server, broker)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave broker and server running")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tarn-demo-"))
    broker, server = Broker(folder / "kafka"), Server(folder / "home")
    try:
        broker.start()
        server.start()
        run(server, broker)
        if arguments.keep:
            say(f"\nThey go on as processes {broker.process.pid} (broker) and "
                f"{server.process.pid} (server), in {folder}")
            return
        server.stop()
        broker.stop()
    except BaseException:
        server.kill()
        broker.kill()
        raise
    shutil.rmtree(folder)
    say("\nDone; broker and server were stopped and their files removed. Keep them with "
        "./dev demo --kafka --keep")


if __name__ == "__main__":
    main()
