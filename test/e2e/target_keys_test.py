"""What a changed file does to a table that is there, and what a task counts of its rows."""

import json

import pytest

from pipeline_test import write_lines, write_pipeline
from server import CommandFailed

ORDERS = """\
  orders:
    from: events
    key: [id]
"""


def transform_status(server):
    return {task["task"]: task for task in server.json("status")["tasks"]}["p.orders"]


def test_view_headers_come_and_go_with_the_file(server, tmp_path):
    file, folder = write_pipeline(tmp_path, ORDERS + "    view_headers: [hdr__from_timestamp]\n")
    write_lines(folder / "1.jsonl", [{"id": 1, "v": "a"}])
    server.run("run", str(file), "--once")
    rows = server.sql("SELECT * FROM orders.orders")
    assert list(rows[0]) == ["hdr__from_timestamp", "id", "v"]
    assert rows[0]["hdr__from_timestamp"] is not None
    file.write_text(file.read_text().replace(
        "[hdr__from_timestamp]", "[hdr__operation, hdr__modified_timestamp]"))
    server.run("run", str(file), "--once")
    rows = server.sql("SELECT * FROM orders.orders")
    assert list(rows[0]) == ["hdr__operation", "hdr__modified_timestamp", "id", "v"]
    assert rows[0]["hdr__operation"] == "I"
    file.write_text(file.read_text().replace("hdr__operation", "hdr__store"))
    with pytest.raises(CommandFailed) as failure:
        server.run("pipeline", "validate", str(file))
    assert "hdr__store" in failure.value.errors and "line " in failure.value.errors


def test_what_only_a_new_table_can_take_is_refused(server, tmp_path):
    file, folder = write_pipeline(tmp_path, ORDERS)
    write_lines(folder / "1.jsonl", [{"id": 1, "v": "a"}])
    server.run("run", str(file), "--once")
    file.write_text(file.read_text().replace(
        "    key: [id]\n", '    key: [id]\n    partition_by: ["v"]\n    schema: sales\n'))
    planned = server.run("pipeline", "plan", str(file), check=False)
    assert "schema: orders, and now sales" in planned and "task recreate p.orders" in planned
    with pytest.raises(CommandFailed) as failure:
        server.run("run", str(file), "--once")
    assert "schema: orders, and now sales" in failure.value.errors
    server.run("task", "recreate", "p.orders")
    server.run("run", str(file), "--once")
    assert server.sql("SELECT id, v FROM sales.orders") == [{"id": 1, "v": "a"}]
    with pytest.raises(CommandFailed):
        server.sql("SELECT id FROM orders.orders")


def test_rows_left_out_and_warnings_are_counted(server, tmp_path):
    file, folder = write_pipeline(tmp_path, ORDERS + """\
    where: "v <> 'no'"
    expect:
      short: {check: "length(v) < 3", action: warn}
""")
    write_lines(folder / "1.jsonl", [
        {"id": 1, "v": "a"}, {"id": 2, "v": "no"}, {"id": 3, "v": "long"}, {"id": 4, "v": "no"},
        {"id": 5, "v": None}])
    server.run("run", str(file), "--once")
    assert [row["id"] for row in server.sql("SELECT id FROM orders.orders ORDER BY id")] == [1, 3]
    status = transform_status(server)
    assert (status["rows_in"], status["rows_out"], status["filtered"]) == (5, 2, 3)
    assert status["counts"]["expect.short.warned"] == 1
    assert [(w["code"], w["object"]) for w in status["warnings"]] == [
        ("expectation_failed", "short")]


def test_dead_letters_of_partial_rows_point_into_the_source(server, tmp_path):
    file, folder = write_pipeline(tmp_path, ORDERS, "{type: json, envelope: debezium}")
    source = {"schema": "s", "table": "t", "ts_ms": 1000, "lsn": 1}
    placeholder = "__debezium_unavailable_value"
    write_lines(folder / "1.jsonl", [
        {"op": "c", "before": None, "after": {"id": 1, "body": "b"}, "source": source},
        {"op": "u", "before": None, "after": {"id": 1, "body": placeholder}, "source": source}])
    server.run("run", str(file), "--once")
    letters = server.sql('SELECT source, "position" AS at, error_code, raw '
                         "FROM landing.events__rejected")
    assert [(row["error_code"], row["at"]) for row in letters] == [("partial_without_base", "1")]
    assert letters[0]["source"].endswith("1.jsonl")
    landed = json.loads(bytes.fromhex(letters[0]["raw"]))
    assert landed["id"] == 1 and landed["hdr__cdc_operation"] == "U"
