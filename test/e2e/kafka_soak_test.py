"""Half an hour of mixed load while server and broker are killed; then every number must be right.

    TARN_SOAK_MINUTES=5 ./dev soak kafka
"""

import json
import os
import random
import threading
import time

from confluent_kafka import KafkaException

from changes import Changes
from kafka_broker import Broker, resident_bytes
from kafka_pipeline import landed, text_of
from server import Server, tasks_of, wait_for

PARTITIONS = 4
KEYS = 3000
RSS_MAX = 1536 << 20

PIPELINE = """\
pipeline: soak
sources:
  bus: {{type: kafka, brokers: ["{address}"]}}
landing:
  events:
    source: bus
    topics: [orders]
    commit: {{interval: 1s}}
  click_events:
    source: bus
    topics: ["clicks.%"]
    exclude_topics: ["clicks.private%"]
    poll: 1s
    commit: {{interval: 1s}}
  payment_events:
    source: bus
    topics: [payments]
    commit: {{interval: 1s}}
  captured:
    source: bus
    topics: ["srv.shop.%"]
    content: {{type: json, envelope: debezium}}
    commit: {{interval: 1s}}
transform:
  orders:
    from: events
    key: [id]
    history: true
    delete_when: "gone"
    apply: {{rows: 1%, min_rows: 5000, files: 32}}
  clicks: {{from: click_events, mode: append}}
  payments: {{from: payment_events, mode: append}}
  customers: {{from: captured, key: [id], where: "hdr__cdc_table = 'shop.customers'"}}
  items: {{from: captured, key: [id], history: true, where: "hdr__cdc_table = 'shop.items'"}}
"""
TASKS = ("events", "click_events", "payment_events", "captured",
         "orders", "clicks", "payments", "customers", "items")


class Load:
    """One stream of messages, sent by a thread of its own until `ended` is set."""

    def __init__(self, broker, ended, seed):
        self.broker = broker
        self.ended = ended
        self.random = random.Random(seed)
        self.failure = None
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            while not self.ended.is_set():
                self.step()
            self.finish()
        except BaseException as failure:  # Shown by the main thread.
            self.failure = failure

    def finish(self):
        self.sender.flush()


class Orders(Load):
    """Upserts and deletes of keys."""

    def __init__(self, broker, ended, seed):
        super().__init__(broker, ended, seed)
        broker.create_topic("orders", PARTITIONS)
        self.changes = Changes(seed, KEYS)
        self.sender = broker.producer(**{"enable.idempotence": True})

    def step(self):
        for change in self.changes.make(100):
            self.sender.send("orders", text_of(change), partition=change["id"] % PARTITIONS)
        self.sender.producer.poll(0.05)


class Clicks(Load):
    """Small records, some of them broken, in more and more topics and partitions."""

    def __init__(self, broker, ended, seed):
        super().__init__(broker, ended, seed)
        self.topics = {}
        self.bad = 0
        self.sum = 0
        self.good = 0
        self.sender = broker.producer(**{"enable.idempotence": True})
        self.add_topic()
        broker.create_topic("clicks.private")

    def add_topic(self):
        name = f"clicks.{len(self.topics)}"
        self.broker.create_topic(name, 1)
        self.topics[name] = 1

    def step(self):
        if self.random.random() < 0.002:
            self.change_topics()
        name = self.random.choice(list(self.topics))
        for _ in range(100):
            if self.random.random() < 0.001:
                self.bad += 1
                self.sender.send(name, self.random.choice([b"{", b"\xff", b"[1]"]))
            else:
                n = self.random.randrange(1000)
                self.good += 1
                self.sum += n
                self.sender.send(name, b'{"n": %d, "text": "some text of a click"}' % n)
        self.sender.send("clicks.private", b'{"n": 1000000}')
        self.sender.producer.poll(0.05)

    def change_topics(self):
        try:
            if len(self.topics) < 20:
                self.add_topic()
            name = self.random.choice(list(self.topics))
            if self.topics[name] < 6:
                self.broker.add_partitions(name, self.topics[name] + 1)
                self.topics[name] += 1
        except KafkaException:
            self.count_topics()  # The broker was killed meanwhile: it may have been done or not.

    def count_topics(self):
        def look():
            try:
                return self.broker.admin.list_topics(timeout=5).topics
            except KafkaException:
                return None
        found = wait_for(look, seconds=120)
        self.topics = {name: len(topic.partitions) for name, topic in found.items()
                       if name.startswith("clicks.") and name != "clicks.private"}


class Payments(Load):
    """Transactions, half of them aborted. What a transaction came to is read from the topic."""

    def __init__(self, broker, ended, seed):
        super().__init__(broker, ended, seed)
        broker.create_topic("payments", PARTITIONS)
        self.number = 0

    def step(self):
        try:
            sender = self.broker.transaction("payments")
            for _ in range(20):
                for _ in range(self.random.randint(1, 50)):
                    self.number += 1
                    sender.send("payments", text_of({"id": self.number}),
                                partition=self.number % PARTITIONS)
                sender.abort() if self.random.random() < 0.5 else sender.commit()
                sender.producer.begin_transaction()
                time.sleep(0.05)
        except (KafkaException, RuntimeError):
            time.sleep(0.5)  # The next producer of this name aborts what was left open.

    def finish(self):
        wait_for(self.close_open_one, seconds=120)

    def close_open_one(self):
        try:
            self.broker.transaction("payments")
            return True
        except KafkaException:
            return False


class Captured(Load):
    """Change events of two tables, deletes with their tombstones."""

    def __init__(self, broker, ended, seed):
        super().__init__(broker, ended, seed)
        self.live = {"customers": {}, "items": {}}
        self.number = 0
        self.tombstones = 0
        self.sender = broker.producer(**{"enable.idempotence": True})
        for table in self.live:
            broker.create_topic(f"srv.shop.{table}", PARTITIONS)

    def step(self):
        for _ in range(30):
            self.send_change(self.random.choice(list(self.live)), self.random.randrange(KEYS))
        self.sender.producer.poll(0.05)

    def send_change(self, table, key):
        self.number += 1
        rows = self.live[table]
        before = rows.get(key)
        after = None if before is not None and self.random.random() < 0.2 else self.number
        image = {"id": key, "n": self.number, "name": f"row {self.number}"}
        event = {"op": "c" if before is None else "u" if after else "d",
                 "before": None if before is None else {"id": key},
                 "after": image if after else None, "ts_ms": 1_796_026_158_137 + self.number,
                 "source": {"schema": "shop", "table": table, "lsn": self.number,
                            "ts_ms": 1_796_026_158_137 + self.number}}
        fields = {"key": text_of({"id": key}), "partition": key % PARTITIONS}
        self.sender.send(f"srv.shop.{table}", text_of(event), **fields)
        if after:
            rows[key] = after
        else:
            del rows[key]
            self.tombstones += 1
            self.sender.send(f"srv.shop.{table}", None, **fields)


def cause_trouble(server, broker, chance, end):
    """Kills and restarts both until the time is over; returns the most memory that was seen."""
    most = 0
    while time.monotonic() < end:
        time.sleep(min(chance.uniform(5, 25), max(0.0, end - time.monotonic())))
        most = max(most, resident_bytes(server.process.pid))
        tasks = tasks_of(server)
        print(f"{end - time.monotonic():.0f} s left, {resident_bytes(server.process.pid) >> 20} "
              f"MiB, {sum(task['rows_in'] for task in tasks.values())} rows in", flush=True)
        assert all(task["state"] in ("RUNNING", "QUEUED") for task in tasks.values()), tasks
        what = chance.choice(["server", "server", "broker", "both", "pause"])
        if what == "pause":
            broker.pause()
            time.sleep(chance.uniform(1, 5))
            broker.resume()
        if what in ("broker", "both"):
            broker.kill()
        if what in ("server", "both"):
            server.kill()
            server.start()
        if what in ("broker", "both"):
            broker.start()
    return most


def check(server, broker, orders, clicks, captured):
    orders.changes.check(server)
    assert landed(server) == orders.changes.number
    totals = server.sql("SELECT count(*) AS c, sum(n) AS s FROM clicks.clicks")
    assert totals == [{"c": clicks.good, "s": clicks.sum}]
    bad = server.sql("SELECT count(*) AS c FROM landing.click_events__rejected")[0]["c"]
    assert bad == clicks.bad and landed(server, "landing.click_events") == clicks.good
    messages = {(part, at) for part, at in broker.read("payments")}
    rows = server.sql("SELECT hdr__kafka_partition AS p, hdr__kafka_offset AS o "
                      "FROM landing.payment_events")
    assert len(rows) == len(messages) and {(row["p"], row["o"]) for row in rows} == messages
    assert server.sql("SELECT count(*) AS c FROM payments.payments") == [{"c": len(messages)}]
    for table, live in captured.live.items():
        rows = server.sql(f"SELECT id, n FROM {table}.{table}")
        assert len(rows) == len(live) and {row["id"]: row["n"] for row in rows} == live, table
    assert landed(server, "landing.captured") == captured.number


def test_soak(tmp_path):
    minutes = float(os.environ.get("TARN_SOAK_MINUTES", "30"))
    seed = int(os.environ.get("TARN_SEED", random.randrange(1 << 30)))
    print(f"{minutes} minutes, seed {seed}", flush=True)
    file = tmp_path / "soak.yaml"
    ended = threading.Event()
    with Broker(tmp_path / "broker") as broker, Server(tmp_path / "home") as server:
        file.write_text(PIPELINE.format(address=broker.address))
        loads = [kind(broker, ended, seed + i)
                 for i, kind in enumerate((Orders, Clicks, Payments, Captured))]
        server.run("pipeline", "apply", str(file))
        for task in TASKS:
            server.run("task", "start", f"soak.{task}")
        for load in loads:
            load.thread.start()
        try:
            most = cause_trouble(server, broker, random.Random(seed),
                                 time.monotonic() + 60 * minutes)
        finally:
            ended.set()
            for load in loads:
                load.thread.join()
        assert not [load.failure for load in loads if load.failure], [
            load.failure for load in loads]
        orders, clicks, _, captured = loads
        wait_for(lambda: landed(server) == orders.changes.number, seconds=300)
        server.run("run", str(file), "--once", timeout=1800)
        check(server, broker, orders, clicks, captured)
        most = max(most, resident_bytes(server.process.pid))
        print(f"{orders.changes.number + clicks.good + captured.number} messages, at most "
              f"{most >> 20} MiB", json.dumps({task: state["counts"] for task, state in
                                               tasks_of(server).items()}), flush=True)
        assert most < RSS_MAX
