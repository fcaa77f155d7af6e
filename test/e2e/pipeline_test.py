"""Files through landing, transforms and tables to every reader."""

import json
import time

import pytest

from foreign import read_with_duckdb, read_with_pyiceberg
from server import DATA, CommandFailed, tasks_of


def write_lines(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def write_pipeline(tmp_path, transform, content="{type: json}", paths='["*.jsonl"]'):
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    file = tmp_path / "pipeline.yaml"
    file.write_text(f"""\
pipeline: p
sources:
  in: {{type: files, uri: {folder.as_uri()}}}
landing:
  events:
    source: in
    paths: {paths}
    content: {content}
transform:
{transform}
""")
    return file, folder


APPEND = """\
  flat:
    from: events
    mode: append
"""


def by_id(rows):
    return sorted(rows, key=lambda row: row["id"])


def test_append_mode_is_read_by_every_engine(server, tmp_path):
    file, folder = write_pipeline(tmp_path, APPEND)
    records = [{"id": i, "name": f"n{i}", "price": i / 4} for i in range(100)]
    write_lines(folder / "a.jsonl", records)
    server.run("run", str(file), "--once")
    assert by_id(server.sql("SELECT id, name, price FROM flat.flat")) == records
    for read in (read_with_pyiceberg, read_with_duckdb):
        rows = by_id(read(server, "flat_internal.flat_internal"))
        assert [{key: row[key] for key in ("id", "name", "price")} for row in rows] == records
        assert {row["hdr__operation"] for row in rows} == {"I"}


def test_running_again_adds_only_what_is_new(server, tmp_path):
    file, folder = write_pipeline(tmp_path, APPEND)
    write_lines(folder / "a.jsonl", [{"id": 1}])
    server.run("run", str(file), "--once")
    server.run("run", str(file), "--once")
    write_lines(folder / "b.jsonl", [{"id": 2, "extra": "x"}])
    server.run("run", str(file), "--once")
    assert by_id(server.sql("SELECT id, extra FROM flat.flat")) == [
        {"id": 1, "extra": None}, {"id": 2, "extra": "x"}]


def test_nested_columns_take_new_members_in(server, tmp_path):
    file, folder = write_pipeline(tmp_path, APPEND.rstrip() + "\n    nested: keep\n")
    write_lines(folder / "a.jsonl", [{"id": 1, "a": {"x": 1}}])
    server.run("run", str(file), "--once")
    write_lines(folder / "b.jsonl", [{"id": 2, "a": {"x": 2, "y": {"z": "new"}}}])
    server.run("run", str(file), "--once")
    write_lines(folder / "c.jsonl", [{"id": 3, "a": {"y": {"z": "other"}}}])
    server.run("run", str(file), "--once")
    assert by_id(server.sql("SELECT id, a.x AS x, a.y.z AS z FROM flat.flat")) == [
        {"id": 1, "x": 1, "z": None}, {"id": 2, "x": 2, "z": "new"},
        {"id": 3, "x": None, "z": "other"}]


EVOLVING = """\
  orders:
    from: events
    key: [ID]
    schema_evolution: {change_column_type: %s}
"""


def test_values_of_another_type_go_to_a_column_of_their_own(server, tmp_path):
    file, folder = write_pipeline(tmp_path, EVOLVING % "apply")
    write_lines(folder / "a.jsonl", [{"id": 1, "price": 5}, {"id": 2, "price": 6}])
    server.run("run", str(file), "--once")
    write_lines(folder / "b.jsonl", [{"Id": 2, "Price": "free"}, {"id": 3, "price": "7"},
                                     {"id": 4, "price": "1.5"}, {"id": 5, "price": None}])
    server.run("run", str(file), "--once")
    write_lines(folder / "c.jsonl", [{"id": 3, "price": "gone"}, {"id": 4, "price": 8}])
    server.run("run", str(file), "--once")
    expected = [{"id": 1, "price": 5, "price_string": None},
                {"id": 2, "price": None, "price_string": "free"},
                {"id": 3, "price": None, "price_string": "gone"},
                {"id": 4, "price": 8, "price_string": None},
                {"id": 5, "price": None, "price_string": None}]
    assert by_id(server.sql("SELECT * FROM orders.orders")) == expected
    for read in (read_with_pyiceberg, read_with_duckdb):
        assert by_id(read(server, "orders.orders__applied")) == expected
    assert sum(task["rejected"] for task in server.json("status")["tasks"]) == 0


def test_a_suspended_table_waits_for_a_decision(server, tmp_path):
    file, folder = write_pipeline(tmp_path, EVOLVING % "suspend_table" + """\
  copies: {from: events, mode: append, columns: {id: id}, only: true}
""")
    write_lines(folder / "a.jsonl", [{"id": 1, "price": 5}])
    server.run("run", str(file), "--once")
    write_lines(folder / "b.jsonl", [{"id": 2, "price": "free"}])
    with pytest.raises(CommandFailed) as failure:
        server.run("run", str(file), "--once")
    assert failure.value.code == 1 and "p.orders" in failure.value.errors
    assert "price" in failure.value.errors and "suspend_table" in failure.value.errors
    tasks = {task["task"]: task for task in server.json("status")["tasks"]}
    assert tasks["p.orders"]["state"] == "SUSPENDED"
    assert "price" in tasks["p.orders"]["last_error"]
    assert tasks["p.copies"]["state"] == "STOPPED"
    assert server.sql("SELECT id FROM orders.orders") == [{"id": 1}]
    assert len(server.sql("SELECT id FROM copies.copies")) == 2
    file.write_text(file.read_text().replace("suspend_table", "apply"))
    server.run("pipeline", "apply", str(file))
    server.run("task", "start", "p.orders")
    deadline = time.monotonic() + 30
    while len(server.sql("SELECT id FROM orders.orders")) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert by_id(server.sql("SELECT id, price, price_string FROM orders.orders")) == [
        {"id": 1, "price": 5, "price_string": None},
        {"id": 2, "price": None, "price_string": "free"}]
    tasks = {task["task"]: task for task in server.json("status")["tasks"]}
    assert tasks["p.orders"]["state"] == "RUNNING" and not tasks["p.orders"]["last_error"]


def test_case_counts_where_the_file_says_so(server, tmp_path):
    file, folder = write_pipeline(tmp_path, """\
  orders: {from: events, key: [ID], case_sensitive: true}
""")
    write_lines(folder / "a.jsonl", [{"id": 1}])
    with pytest.raises(CommandFailed) as failure:
        server.run("run", str(file), "--once")
    assert 'column "ID"' in failure.value.errors and "case_sensitive" in failure.value.errors


def test_numbers_keep_all_their_digits(server, tmp_path):
    file, folder = write_pipeline(tmp_path, APPEND)
    (folder / "a.jsonl").write_text(
        '{"id": 1, "n": 9223372036854775807}\n{"id": 2, "n": 9223372036854775808}\n'
        '{"id": 3, "d": 0.1}\n{"id": 4, "d": 1234567890123456789.123456789}\n')
    server.run("run", str(file), "--once")
    text = server.run("sql", "SELECT id, n, d FROM flat.flat ORDER BY id", "--format", "json")
    assert "9223372036854775808" in text and "1234567890123456789.123456789" in text


def test_bad_records_become_dead_letters(server, tmp_path):
    file, folder = write_pipeline(tmp_path, APPEND)
    (folder / "a.jsonl").write_bytes(
        b'{"id": 1}\n{"id": 2,\n\xff\xfe\n{"id": "\x00"}\n[1]\n{"id": 3}\n{"id": 4')
    server.run("run", str(file), "--once")
    assert [row["id"] for row in server.sql("SELECT id FROM flat.flat ORDER BY id")] == [1, 3]
    letters = server.sql('SELECT error_code, "position", source FROM landing.events__rejected')
    assert len(letters) >= 4
    assert all(letter["source"].endswith("a.jsonl") for letter in letters)
    status = {task["task"]: task for task in server.json("status")["tasks"]}
    assert status["p.events"]["rejected"] == len(letters)


MERGE = """\
  orders:
    from: events
    key: [id]
    history: true
    delete_when: "state = 'gone'"
"""


def test_merge_with_delete_when_and_history(server, tmp_path):
    file, folder = write_pipeline(tmp_path, MERGE)
    write_lines(folder / "1.jsonl", [{"id": 1, "state": "new"}, {"id": 2, "state": "new"},
                                     {"id": 1, "state": "paid"}])
    server.run("run", str(file), "--once")
    write_lines(folder / "2.jsonl", [{"id": 2, "state": "gone"}, {"id": 3, "state": "new"},
                                     {"id": 9, "state": "gone"}])
    server.run("run", str(file), "--once")
    expected = [{"id": 1, "state": "paid"}, {"id": 3, "state": "new"}]
    assert by_id(server.sql("SELECT * FROM orders.orders")) == expected
    for read in (read_with_pyiceberg, read_with_duckdb):
        assert by_id(read(server, "orders.orders__applied")) == expected
    history = server.sql("SELECT id, state, hdr__operation AS op, hdr__store AS store "
                         "FROM orders.orders__history")
    assert sorted((row["id"], row["state"], row["op"], row["store"]) for row in history) == [
        (1, "new", "I", "PRIOR"), (1, "paid", "U", "CURRENT"), (2, "new", "D", "PRIOR"),
        (2, "new", "I", "PRIOR"), (3, "new", "I", "CURRENT")]


def test_several_inputs_are_taken_in_the_order_in_which_they_landed(server, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    file = tmp_path / "pipeline.yaml"
    file.write_text(f"""\
pipeline: p
sources:
  a: {{type: files, uri: {(tmp_path / "a").as_uri()}}}
  b: {{type: files, uri: {(tmp_path / "b").as_uri()}}}
landing:
  first: {{source: a, content: {{type: json}}}}
  second: {{source: b, content: {{type: json}}}}
transform:
  orders: {{from: [first, second], key: [id], history: true}}
""")
    query = ("SELECT v, w, hdr__operation AS op, hdr__store AS store FROM orders.orders__history "
             "ORDER BY hdr__from_timestamp")
    for number, folder in enumerate("abaab"):
        record = {"id": 1, "v": number} | ({"w": "b"} if folder == "b" else {})
        write_lines(tmp_path / folder / f"{number}.jsonl", [record])
        server.run("run", str(file), "--once")
    live = server.sql(query)
    assert [row["v"] for row in live] == [0, 1, 2, 3, 4]
    assert [row["w"] for row in live] == [None, "b", None, None, "b"]
    # A replay has all of it at once.
    server.run("task", "recreate", "p.orders")
    server.run("run", str(file), "--once")
    assert server.sql(query) == live
    assert server.sql("SELECT v FROM orders.orders") == [{"v": 4}]


def test_rows_that_cannot_be_mapped_are_rejected(server, tmp_path):
    file, folder = write_pipeline(tmp_path, """\
  orders:
    from: events
    key: [id]
    columns:
      n: {expr: "n", type: int}
    expect:
      small: {check: "n < 100", action: reject}
""")
    write_lines(folder / "1.jsonl", [{"id": 1, "n": "5"}, {"id": 2, "n": "x"},
                                     {"id": None, "n": "6"}, {"id": 4, "n": "500"}])
    server.run("run", str(file), "--once")
    assert server.sql("SELECT id, n FROM orders.orders") == [{"id": 1, "n": 5}]
    letters = server.sql('SELECT error_code, source, "position", raw FROM landing.events__rejected '
                         "ORDER BY error_code")
    assert [(row["error_code"], row["position"]) for row in letters] == [
        ("cast_failed", "1"), ("expectation_failed", "3"), ("null_key", "2")]
    assert all(row["source"].endswith("1.jsonl") for row in letters)
    landed = json.loads(bytes.fromhex(letters[0]["raw"]))
    assert landed["id"] == 2 and landed["n"] == "x"


def test_a_table_keeps_its_key_and_its_task(server, tmp_path):
    file, folder = write_pipeline(tmp_path, MERGE)
    write_lines(folder / "1.jsonl", [{"id": 1, "state": "new"}])
    server.run("run", str(file), "--once")
    file.write_text(file.read_text().replace("key: [id]", "key: [state]"))
    with pytest.raises(CommandFailed) as failure:
        server.run("run", str(file), "--once")
    assert "tarn.key" in failure.value.errors
    assert server.sql("SELECT id FROM orders.orders") == [{"id": 1}]


@pytest.mark.parametrize("name", ["pg_schema_envelope.jsonl", "pg_plain_noschema_txmeta.jsonl"])
def test_debezium_streams(server, tmp_path, name):
    file, folder = write_pipeline(tmp_path, """\
  docs:
    from: events
    key: [id]
    where: "hdr__cdc_table = 'shop.docs'"
    columns: {id: id, title: title, body: body}
    only: true
  full_docs:
    from: events
    key: [id]
    history: true
    where: "hdr__cdc_table = 'shop.full_docs'"
    columns: {id: id, title: title}
    only: true
""", "{type: json, envelope: debezium}")
    (folder / name).write_bytes((DATA / "debezium" / name).read_bytes())
    server.run("run", str(file), "--once")
    assert server.sql("SELECT * FROM docs.docs") == []
    history = server.sql("SELECT title, hdr__operation AS op FROM full_docs.full_docs__history "
                         "ORDER BY hdr__from_timestamp, op DESC")
    assert sorted((row["op"], row["title"]) for row in history) == [
        ("D", "t2"), ("I", "big"), ("U", "t2")]
    letters = server.sql("SELECT error_code FROM landing.events__rejected")
    assert "partial_without_base" in [row["error_code"] for row in letters]


def test_logical_types_of_a_stream_with_schema(server, tmp_path):
    file, folder = write_pipeline(tmp_path, """\
  all_types:
    from: events
    key: [id]
""", '{type: json, envelope: debezium, tables: ["shop.all_types"]}')
    name = "pg_schema_envelope.jsonl"
    (folder / name).write_bytes((DATA / "debezium" / name).read_bytes())
    server.run("run", str(file), "--once")
    row = server.sql("SELECT * FROM all_types.all_types WHERE id = 1")[0]
    assert row["n"] == 0.5 and row["t"] == "upd" and row["dt"] == "2026-02-28"
    assert row["i8"] == 9007199254740993 and row["ts"].startswith("2026-01-02T03:04:05.678901")
    assert row["tstz"] == "2026-01-02T01:04:05.678901Z"


CHANGES = "{type: json, envelope: debezium}"


def change(op, before, after, schema=None):
    payload = {"op": op, "before": before, "after": after, "ts_ms": 1,
               "source": {"schema": "s", "table": "t", "ts_ms": 1796026158137}}
    if schema is None:
        return payload
    images = [{"type": "struct", "field": name, "fields": schema} for name in ("before", "after")]
    return {"schema": {"type": "struct", "fields": images}, "payload": payload}


def test_a_key_of_encoded_values_changes(server, tmp_path):
    file, folder = write_pipeline(tmp_path, "  dated: {from: events, key: [day, price]}", CHANGES)
    schema = [{"type": "int32", "name": "io.debezium.time.Date", "field": "day"},
              {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
               "parameters": {"scale": "2"}, "field": "price"}, {"type": "string", "field": "v"}]
    old = {"day": 20484, "price": "Dzw=", "v": "a"}
    new = {"day": 20485, "price": "/w==", "v": "b"}
    write_lines(folder / "a.jsonl", [change("c", None, old, schema)])
    server.run("run", str(file), "--once")
    write_lines(folder / "b.jsonl", [change("u", old, new, schema)])
    server.run("run", str(file), "--once")
    assert server.sql("SELECT day, CAST(price AS VARCHAR) AS p, v FROM dated.dated") == [
        {"day": "2026-02-01", "p": "-0.01", "v": "b"}]


def keyed(table, key, row, op="c"):
    value = change(op, row if op == "d" else None, None if op == "d" else row)
    value["source"]["table"] = table
    return {"key": key, "value": value}


def test_the_key_of_the_source_is_the_default(server, tmp_path):
    file, folder = write_pipeline(tmp_path, """\
  lines: {from: events, history: true, rename: {no: line}}
""", CHANGES)
    write_lines(folder / "a.jsonl", [
        keyed("t", {"doc": 1, "no": n}, {"doc": 1, "no": n, "v": "a"}) for n in (1, 2)])
    server.run("run", str(file), "--once")
    write_lines(folder / "b.jsonl", [
        keyed("t", {"doc": 1, "no": 1}, {"doc": 1, "no": 1, "v": "b"}, "u"),
        keyed("t", {"doc": 1, "no": 2}, {"doc": 1, "no": 2, "v": "a"}, "d")])
    server.run("run", str(file), "--once")
    server.run("task", "prepare", "p.lines")
    assert server.sql("SELECT doc, line, v FROM lines.lines") == [{"doc": 1, "line": 1, "v": "b"}]
    write_lines(folder / "c.jsonl", [keyed("t", {"doc": 2}, {"doc": 2, "no": 1, "v": "c"})])
    with pytest.raises(CommandFailed) as failure:
        server.run("run", str(file), "--once")
    assert "doc, line" in failure.value.errors and "key:" in failure.value.errors
    file.write_text(file.read_text().replace("history: true", "history: true, key: [doc, line]"))
    server.run("run", str(file), "--once")
    assert len(server.sql("SELECT * FROM lines.lines")) == 2


def test_tables_with_different_keys_need_one_in_the_file(server, tmp_path):
    file, folder = write_pipeline(tmp_path, "  all: {from: events}", CHANGES)
    write_lines(folder / "a.jsonl", [keyed("t", {"id": 1}, {"id": 1, "no": 1}),
                                     keyed("u", {"no": 1}, {"id": 1, "no": 1})])
    with pytest.raises(CommandFailed) as failure:
        server.run("run", str(file), "--once")
    assert "s.t: id; s.u: no" in failure.value.errors and "key:" in failure.value.errors
    write_lines(folder / "b.jsonl", [change("c", None, {"id": 1})])
    with pytest.raises(CommandFailed):
        server.run("run", str(file), "--once")


def test_rows_leave_and_enter_the_filter(server, tmp_path):
    file, folder = write_pipeline(
        tmp_path, '  big: {from: events, key: [id], where: "n > 10"}', CHANGES)
    write_lines(folder / "a.jsonl", [
        change("c", None, {"id": 1, "n": 20}), change("c", None, {"id": 2, "n": 5}),
        change("c", None, {"id": 3, "n": 30}), change("c", None, {"id": 4, "n": 40})])
    server.run("run", str(file), "--once")
    write_lines(folder / "b.jsonl", [
        change("u", {"id": 1, "n": 20}, {"id": 1, "n": 7}),
        change("u", {"id": 2, "n": 5}, {"id": 2, "n": 50}),
        change("u", {"id": 3, "n": 30}, {"id": 9, "n": 3}),
        change("t", None, None)])
    server.run("run", str(file), "--once")
    assert by_id(server.sql("SELECT id, n FROM big.big")) == [
        {"id": 2, "n": 50}, {"id": 4, "n": 40}]


def test_delete_when_holds_for_changes_with_an_image_before(server, tmp_path):
    file, folder = write_pipeline(tmp_path, """\
  orders: {from: events, key: [id], delete_when: "state = 'gone'", history: true}
""", "{type: json, envelope: debezium, cdc_before: full}")
    rows = [{"id": n, "state": "new"} for n in (1, 2, 3, 4)]
    write_lines(folder / "a.jsonl", [change("c", None, row) for row in rows])
    server.run("run", str(file), "--once")
    write_lines(folder / "b.jsonl", [
        change("u", rows[0], {"id": 1, "state": "gone"}),
        change("u", rows[1], {"id": 8, "state": "gone"}),
        change("u", rows[2], {"id": 9, "state": "moved"}),
        change("u", {"id": 4, "state": "gone"}, {"id": 4, "state": "back"})])
    server.run("run", str(file), "--once")
    assert by_id(server.sql("SELECT * FROM orders.orders")) == [
        {"id": 4, "state": "back"}, {"id": 9, "state": "moved"}]
    assert tasks_of(server)["p.orders"]["filtered"] == 0


def test_columns_that_were_null_at_first(server, tmp_path):
    file, folder = write_pipeline(tmp_path, """\
  every: {from: events, key: [id], rename: {old: new}}
  few: {from: events, key: [id], columns: {id: id, v: v}, only: true}
""")
    first = {"id": 1, "disc%": None, "disc_total": 5, "old": None, "v": "a",
             "s": {"a": None, "b": 1}}
    write_lines(folder / "1.jsonl", [first])
    server.run("run", str(file), "--once")
    assert server.sql("SELECT * FROM every.every") == [
        {"id": 1, "disc_total": 5, "v": "a", "s_b": 1}]
    write_lines(folder / "2.jsonl", [{**first, "id": 2, "disc%": 7, "old": 1.5, "s": {"a": 5}}])
    server.run("run", str(file), "--once")
    row = server.sql("SELECT * FROM every.every WHERE id = 2")[0]
    assert (row["disc%"], row["new"], row["s_a"], row["disc_total"]) == (7, 1.5, 5, 5)
    assert by_id(server.sql("SELECT * FROM few.few")) == [
        {"id": 1, "v": "a"}, {"id": 2, "v": "a"}]


def test_a_table_that_takes_no_columns_takes_no_mapped_ones(server, tmp_path):
    text = """\
  orders:
    from: events
    key: [id]
    schema_evolution: {add_column: ignore}
"""
    file, folder = write_pipeline(tmp_path, text)
    write_lines(folder / "1.jsonl", [{"id": 1, "v": 1}])
    server.run("run", str(file), "--once")
    write_pipeline(tmp_path, text + "    columns: {w: \"v + 1\"}\n    rename: {x: y}\n")
    write_lines(folder / "2.jsonl", [{"id": 2, "v": 2, "x": 3}])
    server.run("run", str(file), "--once")
    assert by_id(server.sql("SELECT * FROM orders.orders")) == [
        {"id": 1, "v": 1}, {"id": 2, "v": 2}]


@pytest.mark.parametrize("metrics", ["none", "counts"])
def test_tables_without_metrics_keep_their_history(server, tmp_path, metrics):
    file, folder = write_pipeline(tmp_path, f"""\
  orders:
    from: events
    key: [id]
    soft_delete: true
    history: true
    delete_when: "gone"
    event_time: "CAST(seen AS TIMESTAMPTZ)"
    table_properties: {{write.metadata.metrics.default: {metrics},
                        write.metadata.metrics.column.hdr__operation: none}}
""")
    for name, day, gone in (("1", 10, False), ("2", 20, True), ("3", 15, False), ("4", 25, False)):
        write_lines(folder / f"{name}.jsonl",
                    [{"id": 1, "seen": f"2026-01-{day}T00:00:00Z", "gone": gone}])
        server.run("run", str(file), "--once")
    spans = server.sql("SELECT hdr__from_timestamp AS f, hdr__to_timestamp AS t FROM "
                       "orders.orders__history ORDER BY f, t")
    assert all(a["t"] is not None and a["t"] <= b["f"] for a, b in zip(spans, spans[1:]))
    assert len(server.sql("SELECT * FROM orders.orders")) == 1


def test_the_key_of_a_source_that_names_no_table(server, tmp_path):
    file, folder = write_pipeline(tmp_path, "  all: {from: events}", CHANGES)
    for name, row in (("a", {"id": 1, "v": "x"}), ("b", {"id": 1, "v": "y"})):
        value = {"op": "c" if name == "a" else "u", "before": None, "after": row}
        write_lines(folder / f"{name}.jsonl", [{"key": {"id": 1}, "value": value}])
        server.run("run", str(file), "--once")
    assert server.sql("SELECT * FROM \"all\".\"all\"") == [{"id": 1, "v": "y"}]


def test_names_that_belong_to_others_are_found_before_the_first_row(server, tmp_path):
    file, folder = write_pipeline(tmp_path, "  orders: {from: events, key: [id]}")
    write_lines(folder / "1.jsonl", [{"id": 1}])
    server.run("run", str(file), "--once")
    (tmp_path / "mine").write_text("mine")
    server.run("dataset", "create", "default/landing/others__rejected")
    server.run("dataset", "put", "default/landing/others__rejected", str(tmp_path / "mine"))
    server.run("dataset", "create", "default/orders/sales")
    text = file.read_text().replace("pipeline: p", "pipeline: q")
    for changed, name in (
            (text.replace("events", "others").replace("orders:", "o2:"), "others__rejected"),
            (text.replace("events", "more").replace("orders:", "sales:").replace(
                "key:", "schema: orders, key:"), "sales")):
        file.write_text(changed)
        for command in (("pipeline", "apply", str(file)), ("run", str(file), "--once")):
            with pytest.raises(CommandFailed) as failure:
                server.run(*command)
            assert failure.value.code == 4 and name in failure.value.errors


def test_a_wrong_pipeline_file_names_line_and_column(server, tmp_path):
    file = tmp_path / "wrong.yaml"
    file.write_text("pipeline: p\nlandings: {}\n")
    with pytest.raises(CommandFailed) as failure:
        server.run("run", str(file), "--once")
    assert "line 2, column 1" in failure.value.errors


def test_a_missing_source_fails_with_its_name(server, tmp_path):
    file, folder = write_pipeline(tmp_path, APPEND)
    folder.rmdir()
    with pytest.raises(CommandFailed) as failure:
        server.run("run", str(file), "--once")
    assert failure.value.code == 1 and "in" in failure.value.errors


def test_datasets_on_the_command_line(server, tmp_path):
    file = tmp_path / "ä b%20c.txt"
    file.write_text("hello")
    server.run("dataset", "create", "default/files")
    server.run("dataset", "put", "default/files", str(file))
    assert "ä b%20c.txt" in server.run("dataset", "ls", "default/files")
    out = tmp_path / "out"
    server.run("dataset", "get", "default/files", "--to", str(out))
    assert (out / file.name).read_text() == "hello"
    assert "COMMITTED" in server.run("dataset", "log", "default/files")
    with pytest.raises(CommandFailed) as failure:
        server.run("dataset", "ls", "default/nothing")
    assert failure.value.code == 3


def test_health_and_metrics(server):
    import urllib.request

    for path in ("/healthz", "/readyz", "/metrics"):
        with urllib.request.urlopen(server.url + path) as answer:
            assert answer.status == 200
