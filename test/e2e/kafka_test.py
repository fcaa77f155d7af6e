"""Topics through landing, transforms and tables to every reader."""

import base64
import json
import re
import time

import pytest

import kafka_demo
from foreign import read_with_duckdb, read_with_pyiceberg
from kafka_broker import PASSWORD, USER, MemoryBroker
from kafka_pipeline import (landed, letters_of, new_name, replay, text_of, write_pipeline)
from server import DATA, CommandFailed, Server, follow, metrics_of, tasks_of, wait_for

FLAT = "flat: {from: events, mode: append}\n"
BEGIN_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z.


@pytest.fixture
def topic():
    return new_name()


@pytest.fixture(params=["kafka", "kfake"])
def peer(request, tmp_path):
    if request.param == "kafka":
        yield request.getfixturevalue("broker")
    else:
        with MemoryBroker(tmp_path) as running:
            yield running


def run(server, file):
    server.run("run", str(file), "--once")


def failure_of(server, file):
    """What `tarn run --once` says when a task fails."""
    with pytest.raises(CommandFailed) as failure:
        run(server, file)
    assert failure.value.code == 1, failure.value
    return failure.value.errors


def ids(server, table="flat.flat"):
    return sorted(row["id"] for row in server.sql(f"SELECT id FROM {table}"))


def test_a_topic_becomes_an_append_table(server, peer, topic, tmp_path):
    peer.create_topic(topic, 4)
    records = [{"id": i, "name": f"n{i}", "price": i / 4} for i in range(1000)]
    peer.produce(topic, [(text_of(record), {"partition": record["id"] % 4,
                                            "timestamp": BEGIN_MS + record["id"]})
                         for record in records])
    file = write_pipeline(tmp_path, peer.address, f"topics: [{topic}]", """\
        flat:
          from: events
          mode: append
          columns: {part: hdr__kafka_partition, at: hdr__kafka_offset}
        """)
    run(server, file)
    rows = server.sql("SELECT * FROM flat.flat ORDER BY id")
    assert rows == [{**record, "part": record["id"] % 4, "at": record["id"] // 4}
                    for record in records]
    assert sorted(read_with_pyiceberg(server, "flat_internal.flat_internal"),
                  key=lambda row: row["id"])[7]["name"] == "n7"
    assert len(read_with_duckdb(server, "flat_internal.flat_internal")) == 1000
    header = server.sql("SELECT min(hdr__event_timestamp) AS first, max(hdr__event_timestamp) AS "
                        "last, min(hdr__kafka_topic) AS topic FROM landing.events")[0]
    assert header["topic"] == topic
    assert header["first"].startswith("2023-11-14T22:13:20")
    assert header["last"].startswith("2023-11-14T22:13:20.999")
    peer.produce(topic, [text_of({"id": 1000 + i}) for i in range(50)])
    run(server, file)
    run(server, file)
    assert ids(server) == list(range(1050)) and landed(server) == 1050
    task = tasks_of(server)["k.events"]
    assert (task["state"], task["rows_in"], task["rejected"]) == ("STOPPED", 1050, 0)


def test_keys_and_headers_arrive_byte_for_byte(server, broker, topic, tmp_path):
    broker.create_topic(topic)
    messages = [
        (text_of({"id": 0}), {}),
        (text_of({"id": 1}), {"key": b""}),
        (text_of({"id": 2}), {"key": b"\xff\x00\xfe", "headers": [
            ("b", b"\xff"), ("a", b"1"), ("ü", "zwölf".encode()), ("a", b"2"), ("n", None)]}),
        (text_of({"id": 3}), {"key": "k3", "headers": []}),
    ]
    broker.produce(topic, messages)
    file = write_pipeline(tmp_path, broker.address, f"topics: [{topic}]")
    sample = json.loads(server.run("landing", "sample", str(file), "--json"))
    run(server, file)
    rows = server.sql("SELECT id, hdr__kafka_key AS key, hdr__kafka_headers AS headers, "
                      "hdr__kafka_tombstone AS gone, hdr__kafka_offset AS at "
                      "FROM landing.events ORDER BY id")
    assert [row["key"] for row in rows] == [
        None, "", base64.b64encode(b"\xff\x00\xfe").decode(), base64.b64encode(b"k3").decode()]
    assert [row["at"] for row in rows] == [0, 1, 2, 3]
    assert not any(row["gone"] for row in rows)
    assert [row["headers"] for row in rows if row["id"] != 2] == [None, None, None]
    assert {row["id"]: row["hdr__kafka_headers"] for row in sample} == {
        row["id"]: row["headers"] for row in rows}
    assert json.loads(rows[2]["headers"], object_pairs_hook=list) == [
        ("b", [("base64", "/w==")]), ("a", ["1", "2"]), ("ü", "zwölf"), ("n", None)]


@pytest.mark.parametrize("form", ["json", "string"])
def test_a_tombstone_deletes_what_the_message_key_names(server, broker, topic, tmp_path, form):
    broker.create_topic(topic)
    key = (lambda i: text_of({"id": f"k{i}"})) if form == "json" else (lambda i: f"k{i}")
    broker.produce(topic, [(text_of({"v": i}), {"key": key(i)}) for i in range(4)])
    broker.produce(topic, [(None, {"key": key(1)}), (None, {"key": key(9)}),
                           (text_of({"v": 20}), {"key": key(2)})])
    file = write_pipeline(tmp_path, broker.address, f"""\
        topics: [{topic}]
        key_columns: {{format: {form}, names: [id]}}
        """, "rows: {from: events, key: [id], history: true}\n")
    run(server, file)
    expected = [{"id": "k0", "v": 0}, {"id": "k2", "v": 20}, {"id": "k3", "v": 3}]
    assert server.sql("SELECT id, v FROM rows.rows ORDER BY id") == expected
    assert sorted(read_with_pyiceberg(server, "rows.rows__applied"),
                  key=lambda row: row["id"]) == expected
    history = server.sql("SELECT id, v, hdr__operation AS op FROM rows.rows__history")
    assert sorted((row["id"], row["op"], row["v"]) for row in history) == [
        ("k0", "I", 0), ("k1", "D", 1), ("k1", "I", 1), ("k2", "I", 2), ("k2", "U", 20),
        ("k3", "I", 3)]
    gone = server.sql("SELECT id, v FROM landing.events WHERE hdr__kafka_tombstone ORDER BY id")
    assert gone == [{"id": "k1", "v": None}, {"id": "k9", "v": None}]


def test_a_tombstone_without_key_columns_is_a_dead_letter(server, broker, topic, tmp_path):
    broker.create_topic(topic)
    broker.produce(topic, [(text_of({"id": 1}), {"key": "1"}), (None, {"key": "1"})])
    run(server, write_pipeline(tmp_path, broker.address, f"topics: [{topic}]",
                               "rows: {from: events, key: [id]}\n"))
    assert server.sql("SELECT id FROM rows.rows") == [{"id": 1}]
    letters = letters_of(server)
    assert letters == [{"error_code": "tombstone", "source": topic, "position": "1"}]


@pytest.mark.parametrize("name", ["pg_schema_envelope", "pg_plain_noschema_txmeta"])
def test_change_events_of_several_tables(server, broker, topic, tmp_path, name):
    sent = replay(broker, DATA / "debezium" / f"{name}.jsonl", topic)
    file = write_pipeline(tmp_path, broker.address, f"""\
        topics: ["{topic}.shop.%"]
        exclude_topics: ["%.all_types"]
        content: {{type: json, envelope: debezium, tables: ["shop.customers", "shop.order_items"]}}
        """, """\
        customers:
          from: events
          key: [id]
          history: true
          where: "hdr__cdc_table = 'shop.customers'"
          columns: {id: id, email: email, mail: mail}
          only: true
        items:
          from: events
          key: [order_id, line_no]
          where: "hdr__cdc_table = 'shop.order_items'"
          columns: {order_id: order_id, line_no: line_no, qty: qty}
          only: true
        """)
    run(server, file)
    assert ids(server, "customers.customers") == [2, 4, 5, 10]
    gone = server.sql("SELECT id FROM customers.customers__history WHERE hdr__deleted")
    assert [row["id"] for row in gone] == [1]
    items = server.sql("SELECT order_id, line_no, qty FROM items.items ORDER BY line_no")
    assert items == [{"order_id": 1, "line_no": line, "qty": qty} for line, qty in ((1, 3), (2, 1))]
    assert sorted(row["id"] for row in read_with_duckdb(server, "customers.customers__applied")
                  ) == [2, 4, 5, 10]
    task = tasks_of(server)["k.events"]
    assert task["rejected"] == 0 and task["rows_in"] < sent
    topics = server.sql("SELECT DISTINCT hdr__kafka_topic AS t FROM landing.events ORDER BY t")
    assert [row["t"] for row in topics] == [f"{topic}.shop.customers", f"{topic}.shop.order_items"]


def test_new_topics_and_partitions_are_taken_up_while_it_runs(server, broker, topic, tmp_path):
    for name in ("a", "b", "skip"):
        broker.create_topic(f"{topic}.{name}")
        broker.produce(f"{topic}.{name}", [text_of({"id": 1})])
    file = write_pipeline(tmp_path, broker.address, f"""\
        topics: ["{topic}.%"]
        exclude_topics: ["%.skip%"]
        poll: 200ms
        commit: {{interval: 200ms}}
        """, FLAT)
    running = follow(server, file)
    try:
        wait_for(lambda: landed_or_none(server) == 2)
        broker.create_topic(f"{topic}.c", 2)
        broker.create_topic(f"{topic}.skip2")
        broker.produce(f"{topic}.skip2", [text_of({"id": 9})])
        broker.produce(f"{topic}.c", [(text_of({"id": i}), {"partition": i % 2}) for i in range(9)])
        broker.add_partitions(f"{topic}.a", 3)
        broker.produce(f"{topic}.a", [(text_of({"id": i}), {"partition": i}) for i in range(3)])
        wait_for(lambda: landed(server) == 14)
        assert running.poll() is None
    finally:
        running.kill()
        running.wait()
    found = server.sql("SELECT hdr__kafka_topic AS t, hdr__kafka_partition AS p, count(*) AS c "
                       "FROM landing.events GROUP BY ALL ORDER BY ALL")
    assert [(row["t"].split(".")[1], row["p"], row["c"]) for row in found] == [
        ("a", 0, 2), ("a", 1, 1), ("a", 2, 1), ("b", 0, 1), ("c", 0, 5), ("c", 1, 4)]
    wait_for(lambda: server.sql("SELECT count(*) AS c FROM flat.flat") == [{"c": 14}])


def landed_or_none(server):
    """Rows that have landed, None before there is a dataset."""
    try:
        return landed(server)
    except CommandFailed:
        return None


def test_new_topics_can_be_left_alone(server, broker, topic, tmp_path):
    broker.create_topic(f"{topic}.a")
    broker.produce(f"{topic}.a", [text_of({"id": 1})])
    file = write_pipeline(tmp_path, broker.address, f"""\
        topics: ["{topic}.%"]
        on_new_topic: ignore
        """, FLAT)
    run(server, file)
    broker.create_topic(f"{topic}.b")
    broker.produce(f"{topic}.b", [text_of({"id": 2})])
    broker.produce(f"{topic}.a", [text_of({"id": 3})])
    run(server, file)
    assert ids(server) == [1, 3]


def test_one_dataset_for_each_topic(server, broker, topic, tmp_path):
    names = [f"{topic}Orders-EU", f"{topic}items.x"]
    for name in names:
        broker.create_topic(name, 2)
        broker.produce(name, [text_of({"id": i, name[-1]: i}) for i in range(5)])
    run(server, write_pipeline(tmp_path, broker.address, f"""\
        topics: ["{topic}%"]
        one_dataset: false
        """))
    assert landed(server, f"landing.{topic}orders_eu") == 5
    assert landed(server, f"landing.{topic}items_x") == 5
    assert ids(server, f"landing.{topic}items_x") == [0, 1, 2, 3, 4]


def test_where_reading_starts(server, broker, topic, tmp_path):
    broker.create_topic(topic, 2)
    broker.produce(topic, [(text_of({"id": i}), {"partition": i % 2,
                                                 "timestamp": BEGIN_MS + 1000 * i})
                           for i in range(10)])
    now = write_pipeline(tmp_path, broker.address, f"topics: [{topic}]\nstart: now", FLAT)
    run(server, now)
    assert landed_or_none(server) in (None, 0)
    # It began: what comes from now on lands, whenever it is run again.
    broker.produce(topic, [(text_of({"id": 10 + i}), {"partition": i % 2}) for i in range(4)])
    run(server, now)
    assert ids(server) == [10, 11, 12, 13]
    timed = write_pipeline(tmp_path, broker.address, f"""\
        topics: [{topic}]
        start: 2023-11-14T22:13:25Z
        schema: timed
        """, "since: {from: events, mode: append}\n", name="timed")
    run(server, timed)
    assert ids(server, "since.since") == list(range(5, 14))


def test_only_what_was_committed_is_read(server, peer, topic, tmp_path):
    peer.create_topic(topic, 2)
    peer.produce(topic, [(text_of({"id": 1}), {"partition": 0})])
    for name, number, end in (("a", 10, "commit"), ("b", 20, "abort"), ("c", 30, "commit")):
        sender = peer.transaction(f"{topic}-{name}")
        for i in range(6):
            sender.send(topic, text_of({"id": number + i}), partition=i % 2)
        sender.commit() if end == "commit" else sender.abort()
    open_one = peer.transaction(f"{topic}-open")
    open_one.send(topic, text_of({"id": 40}), partition=0)
    open_one.flush()
    peer.produce(topic, [(text_of({"id": 50}), {"partition": 0}),
                         (text_of({"id": 51}), {"partition": 1})])
    file = write_pipeline(tmp_path, peer.address, f"topics: [{topic}]", FLAT)
    run(server, file)
    committed = [1, *range(10, 16), *range(30, 36)]
    assert ids(server) == [*committed, 51]
    open_one.commit()
    run(server, file)
    assert ids(server) == [*committed, 40, 50, 51]
    task = tasks_of(server)["k.events"]
    assert task["rows_in"] == 16 and task["lag_rows"] == 0 and task["lag_seconds"] == 0


def test_bad_messages_become_dead_letters(server, broker, topic, tmp_path):
    broker.create_topic(topic)
    large = text_of({"id": 4, "text": "x" * 2000})
    broker.produce(topic, [text_of({"id": 0}), b'{"id": 1', b"\xff\xfe", b"[1]", large, b"",
                           text_of({"id": 6})])
    file = write_pipeline(tmp_path, broker.address, f"topics: [{topic}]\nmax_record: 1KiB", FLAT)
    run(server, file)
    assert ids(server) == [0, 6]
    letters = letters_of(server, 'error_code, source, "position", raw')
    assert [letter["position"] for letter in letters] == ["1", "2", "3", "4", "5"]
    codes = [letter["error_code"] for letter in letters]
    assert codes == ["truncated", "bad_utf8", "not_an_object", "too_large", "truncated"]
    assert all(letter["source"] == topic for letter in letters)
    assert letters[0]["raw"] == b'{"id": 1'.hex()
    assert tasks_of(server)["k.events"]["rejected"] == 5


def test_dead_letters_of_a_topic_land_where_they_came_from(server, broker, topic, tmp_path):
    broker.create_topic(topic, 2)
    broker.produce(topic, [(text_of({"id": 1, "v": 1}), {"partition": 0}),
                           (text_of({"id": 2, "v": "x"}), {"partition": 1}), b"{"])
    landing = f"topics: [{topic}]\ncolumns: {{v: int}}"
    file = write_pipeline(tmp_path, broker.address, landing)
    run(server, file)
    assert len(letters_of(server)) == 2
    file = write_pipeline(tmp_path, broker.address, landing.replace("int", "string"))
    server.run("pipeline", "apply", str(file))
    report = server.json("landing", "replay-rejected", str(file), "events")
    assert (report["replayed"], report["rows"], report["rejected"]) == (1, 1, 1)
    assert server.sql("SELECT hdr__kafka_topic AS t, hdr__kafka_partition AS p, "
                      "hdr__kafka_offset AS o, v FROM landing.events WHERE id = 2") == [
        {"t": topic, "p": 1, "o": 0, "v": "x"}]
    assert len(letters_of(server)) == 1
    # Offsets go on behind what was read.
    broker.produce(topic, [text_of({"id": 3, "v": "y"})])
    run(server, file)
    assert landed(server) == 3
    file = write_pipeline(tmp_path, broker.address, landing + "\nkey_columns: {names: [k]}")
    server.run("pipeline", "apply", str(file))
    with pytest.raises(CommandFailed) as failure:
        server.run("landing", "replay-rejected", str(file))
    assert "key_columns" in failure.value.errors


def test_a_bad_message_can_stop_the_task(server, broker, topic, tmp_path):
    broker.create_topic(topic)
    broker.produce(topic, [text_of({"id": i}) for i in range(3)] + [b"no json"])
    file = write_pipeline(tmp_path, broker.address, f"topics: [{topic}]\non_bad_record: stop", FLAT)
    errors = failure_of(server, file)
    assert topic in errors and "3" in errors and "k.events" in errors


def test_a_large_message_lands(server, broker, topic, tmp_path):
    broker.create_topic(topic)
    with broker.producer(**{"message.max.bytes": 20 << 20}) as sender:
        sender.send(topic, text_of({"id": 1, "text": "x" * (12 << 20)}))
        sender.send(topic, text_of({"id": 2, "text": "y" * (17 << 20)}))
        sender.send(topic, text_of({"id": 3, "text": "z"}))
    run(server, write_pipeline(tmp_path, broker.address, f"topics: [{topic}]"))
    rows = server.sql("SELECT id, length(text) AS n FROM landing.events ORDER BY id")
    assert rows == [{"id": 1, "n": 12 << 20}, {"id": 3, "n": 1}]
    assert [(letter["error_code"], letter["position"]) for letter in letters_of(server)] == [
        ("too_large", "1")]


def test_a_lost_range_stops_the_task_or_is_recorded(server, broker, topic, tmp_path):
    broker.create_topic(topic, 2)
    other = [(text_of({"id": 100}), {"partition": 1})]
    broker.produce(topic, [text_of({"id": i}) for i in range(10)], partition=0)
    broker.produce(topic, other)
    file = write_pipeline(tmp_path, broker.address, f"topics: [{topic}]", FLAT)
    run(server, file)
    broker.produce(topic, [text_of({"id": i}) for i in range(10, 20)], partition=0)
    broker.produce(topic, other)
    broker.delete_records(topic, 15)
    errors = failure_of(server, file)
    assert topic in errors and "10" in errors and "15" in errors and "on_lost_range" in errors
    task = tasks_of(server)["k.events"]
    assert task["state"] == "ERROR" and "15" in task["last_error"]
    assert ids(server) == [*range(10), 100]
    file.write_text(file.read_text().replace("topics:", "on_lost_range: continue\n    topics:"))
    run(server, file)
    assert ids(server) == [*range(10), *range(15, 20), 100, 100]
    warnings = tasks_of(server)["k.events"]["warnings"]
    lost = [warning for warning in warnings if warning["code"] == "lost_range"]
    assert len(lost) == 1 and topic in lost[0]["object"], warnings
    run(server, file)
    assert landed(server) == 17


@pytest.mark.parametrize("count", [3, 25])
def test_a_topic_that_was_made_again_is_noticed(server, broker, topic, tmp_path, count):
    """Also when it has more messages than were read of the old one."""
    broker.create_topic(topic)
    broker.produce(topic, [text_of({"id": i}) for i in range(10)])
    file = write_pipeline(tmp_path, broker.address, f"topics: [{topic}]", FLAT)
    run(server, file)
    broker.delete_topic(topic)
    broker.create_topic(topic)
    broker.produce(topic, [text_of({"id": 20 + i}) for i in range(count)])
    errors = failure_of(server, file)
    assert topic in errors and "10" in errors and "made again" in errors
    assert ids(server) == list(range(10))
    file.write_text(file.read_text().replace("topics:", "on_lost_range: continue\n    topics:"))
    run(server, file)
    assert ids(server) == [*range(10), *range(20, 20 + count)]


def test_holes_of_compaction_are_no_loss(server, broker, topic, tmp_path):
    broker.create_topic(topic, cleanup_policy="compact", segment_ms=100, max_compaction_lag_ms=100,
                        min_cleanable_dirty_ratio=0.01)
    file = write_pipeline(tmp_path, broker.address, f"topics: [{topic}]", """\
        rows: {from: events, key: [id]}
        """)
    for turn in range(4):
        broker.produce(topic, [(text_of({"id": i % 5, "n": 100 * turn + i}), {"key": str(i % 5)})
                               for i in range(50)])
        if turn == 1:
            run(server, file)
        time.sleep(0.15)
    before = wait_for(lambda: [left for left in [broker.read(topic)] if len(left) < 150])[0]
    run(server, file)
    after = broker.read(topic)  # The cleaner may have gone on meanwhile.
    rows = server.sql("SELECT hdr__kafka_offset AS at FROM landing.events")
    found = {row["at"] for row in rows}
    assert len(rows) == len(found)
    assert {at for _, at in after} <= found <= {at for _, at in before} | set(range(100))
    assert server.sql("SELECT id, n FROM rows.rows ORDER BY id") == [
        {"id": i, "n": 345 + i} for i in range(5)]
    assert tasks_of(server)["k.events"]["warnings"] == []


def test_the_group_on_the_broker_is_for_others_to_look_at(server, broker, topic, tmp_path):
    broker.create_topic(topic)
    broker.produce(topic, [text_of({"id": i}) for i in range(10)])
    file = write_pipeline(tmp_path, broker.address, f"topics: [{topic}]", FLAT, name=topic)
    run(server, file)
    group = f"tarn.{topic}.events"
    wait_for(lambda: broker.committed(group, topic) == 10)
    assert group in broker.groups()
    broker.delete_group(group)
    broker.produce(topic, [text_of({"id": i}) for i in range(10, 15)])
    run(server, file)
    assert ids(server) == list(range(15)) and landed(server) == 15


def test_lag_is_shown_while_messages_wait(server, broker, topic, tmp_path):
    broker.create_topic(topic, 2)
    broker.produce(topic, [text_of({"id": i}) for i in range(10)], partition=1)
    file = write_pipeline(tmp_path, broker.address, f"""\
        topics: [{topic}]
        commit: {{rows: 1_000_000, interval: 3s}}
        """, FLAT)
    running = follow(server, file)
    try:
        wait_for(lambda: landed_or_none(server) == 10)
        broker.produce(topic, [text_of({"id": 10 + i}) for i in range(7)], partition=0)
        waiting = wait_for(lambda: task_with(server, "lag_rows", lambda lag: lag == 7))
        assert waiting["rows_in"] in (10, 17) and waiting["state"] == "RUNNING"
        wait_for(lambda: f'task="events",kind="landing"}} 7' in metrics_of(server), seconds=3)
        done = wait_for(lambda: task_with(server, "lag_rows", lambda lag: lag == 0))
        assert (done["rows_in"], done["rows_out"], done["lag_seconds"]) == (17, 17, 0)
        assert done["data_updated_to"] and done["last_commit"]
    finally:
        running.kill()
        running.wait()


def task_with(server, member, holds):
    """The landing task, when its `member` is as wanted."""
    task = tasks_of(server)["k.events"]
    return task if holds(task[member]) else None


LOGIN = f"""\
client:
  security.protocol: SASL_PLAINTEXT
  sasl.mechanism: PLAIN
  sasl.username: {USER}
  sasl.password: "${{KAFKA_PASSWORD}}"
"""


def test_a_broker_that_asks_for_a_password(broker, topic, tmp_path, monkeypatch):
    broker.create_topic(topic)
    broker.produce(topic, [text_of({"id": 1})])
    file = write_pipeline(tmp_path, broker.sasl_address, f"topics: [{topic}]", FLAT, source=LOGIN)
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    with Server(tmp_path / "home") as server:
        shown = server.run("run", str(file), "--once")
        assert ids(server) == [1]
        for command in (["pipeline", "export", "k"], ["pipeline", "show", "k"], ["status"]):
            shown += server.run(*command, "--json")
        assert PASSWORD not in shown + server.log_text() + metrics_of(server)
        monkeypatch.setenv("KAFKA_PASSWORD", "wrong-secret")
        errors = failure_of(server, file)
        assert "uthenticat" in errors and "wrong-secret" not in errors
        assert "wrong-secret" not in server.log_text() + server.run("status", "--json")


def test_what_is_not_there_is_named(server, broker, topic, tmp_path):
    errors = failure_of(server, write_pipeline(tmp_path, broker.address, f"topics: [{topic}]"))
    assert topic in errors
    begin = time.monotonic()
    errors = failure_of(server, write_pipeline(tmp_path, "127.0.0.1:1", f"topics: [{topic}]"))
    assert "127.0.0.1:1" in errors and time.monotonic() - begin < 40


WRONG = [
    ("paths: ['*']\ntopics: [a]", "", "paths"),
    ("poll: 1s", "", "topics"),
    ("topics: []", "", "topics"),
    ("topics: [a]\nstart: yesterday", "", "start"),
    ("topics: ['a b']", "", "a b"),
    ("topics: [a]\ntombstone: keep", "", "tombstone"),
    ("topics: [a]\nkey_columns: {format: json}", "", "names"),
    ("topics: [a]\nkey_columns: {format: avro, names: [id]}", "", "avro"),
    ("topics: [a]", "client: {no.such.property: 1}", "no.such.property"),
    ("topics: [a]", "client: {enable.auto.commit: true}", "enable.auto.commit"),
    ("topics: [a]", "client: {isolation.level: read_uncommitted}", "isolation.level"),
    ("topics: [a]", "client: {plugin.library.paths: x}", "plugin.library.paths"),
    ("topics: [a]", "client: {fetch.max.bytes: many}", "fetch.max.bytes"),
    ("topics: [a]", "uri: file:///tmp", "uri"),
]


def test_wrong_files_are_refused_with_their_place(server, tmp_path):
    for landing, source, part in WRONG:
        file = write_pipeline(tmp_path, "127.0.0.1:9092", landing, source=source)
        with pytest.raises(CommandFailed) as failure:
            server.run("pipeline", "validate", str(file))
        assert part in failure.value.errors and "line" in failure.value.errors, failure.value


def test_a_branch_that_was_set_back_lands_again(server, broker, topic, tmp_path):
    broker.create_topic(topic)
    file = write_pipeline(tmp_path, broker.address, f"topics: [{topic}]")
    for turn in range(3):
        broker.produce(topic, [text_of({"id": 10 * turn + i}) for i in range(3)])
        run(server, file)
    assert landed(server) == 9
    newest, middle, *_ = server.json("dataset", "log", "default/landing/events")
    server.run("dataset", "branch", "reset", "default/landing/events", "master", middle["rid"])
    assert landed(server) == 6
    run(server, file)
    assert ids(server, "landing.events") == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert landed(server) == 9
    assert newest["rid"] not in [transaction["rid"] for transaction in
                                 server.json("dataset", "log", "default/landing/events")]


def test_the_page_of_the_demo(server, broker, capsys, monkeypatch):
    monkeypatch.setattr(kafka_demo, "SECONDS", 1)
    kafka_demo.run(server, broker)
    page = capsys.readouterr().out
    for text in ("A-1", "PRIOR", "truncated", "rows have landed", "DuckDB:", "PyIceberg:"):
        assert text in page, page
    sent, there = re.search(r"(\d+) messages were sent, (\d+) rows have landed", page).groups()
    assert sent == there
