"""Servers and brokers that are killed, stopped and cut off: nothing lost, nothing twice."""

import os
import random
import threading
import time

import pytest

from changes import Changes
from kafka_broker import Broker
from kafka_pipeline import landed, new_name, text_of, write_pipeline
from server import CommandFailed, Server, follow, tasks_of, wait_for

LANDING = """\
topics: [{topic}]
poll: 200ms
commit: {{rows: 400, interval: 200ms}}
"""

ORDERS = """\
orders:
  from: events
  key: [id]
  history: true
  delete_when: "gone"
  apply: {rows: 1%, min_rows: 300, bytes: 1MiB, files: 4}
"""

CRASH_POINTS = ["storage-before-publish", "metastore-after-commit", "landing-before-commit",
                "landing-after-commit"]
PARTITIONS = 3


class Feed(Changes):
    """Random changes as messages; those of one key go to one partition, where they keep order."""

    def __init__(self, broker, topic, seed):
        super().__init__(seed)
        self.topic = topic
        broker.create_topic(topic, PARTITIONS)
        self.sender = broker.producer(**{"enable.idempotence": True})

    def send(self, rows=400):
        for change in self.make(rows):
            self.sender.send(self.topic, text_of(change), partition=change["id"] % PARTITIONS)

    def send_on(self, seconds, rows=50):
        """Sends for a while, whatever happens to broker and server."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.send(rows)
            self.sender.producer.poll(0.02)

    def check(self, server):
        super().check(server)
        assert landed(server) == self.number


@pytest.fixture
def topic():
    return new_name()


@pytest.fixture
def own_broker(tmp_path):
    """A broker that the test may kill."""
    with Broker(tmp_path / "broker") as running:
        yield running


def seed_of(name):
    seed = int(os.environ.get("TARN_SEED", random.randrange(1 << 30)))
    print(name, "seed", seed)
    return seed


def run(server, file):
    server.run("run", str(file), "--once")


def landed_or_zero(server):
    """Rows that have landed, none before there is a dataset."""
    try:
        return landed(server)
    except CommandFailed:
        return 0


def test_kill_at_a_named_point(broker, topic, tmp_path):
    feed = Feed(broker, topic, seed_of("points"))
    file = write_pipeline(tmp_path, broker.address, LANDING.format(topic=topic), ORDERS)
    server = Server(tmp_path / "home")
    with server:
        feed.send()
        feed.sender.flush()
        run(server, file)
        feed.check(server)
    for point in CRASH_POINTS:
        feed.send(1000)
        feed.sender.flush()
        try:
            server.start({"TARN_CRASH_POINT": f"{point}:1"})
            server.run("run", str(file), "--once", timeout=60)
        except (CommandFailed, RuntimeError):
            pass
        assert server.process.wait(timeout=10) != 0, f"{point} was never reached"
    with server:
        run(server, file)
        feed.check(server)
        feed.check_counters(server)


def test_kill_the_server_while_it_follows(broker, topic, tmp_path):
    feed = Feed(broker, topic, seed_of("server"))
    file = write_pipeline(tmp_path, broker.address, LANDING.format(topic=topic), ORDERS)
    server = Server(tmp_path / "home")
    with server:
        server.run("pipeline", "apply", str(file))
        for task in ("k.events", "k.orders"):
            server.run("task", "start", task)
    sending = threading.Thread(target=feed.send_on, args=(8,))
    sending.start()
    for _ in range(int(os.environ.get("TARN_ROUNDS", "5"))):
        # Its tasks were running: they go on when it starts.
        server.start()
        time.sleep(feed.random.uniform(0.2, 1.5))
        server.kill()
    sending.join()
    feed.sender.flush()
    with server:
        wait_for(lambda: landed_or_zero(server) == feed.number)
        run(server, file)
        feed.check(server)
        feed.check_counters(server)


def start_following(server, broker_address, topic, tmp_path, client=""):
    file = write_pipeline(tmp_path, broker_address, LANDING.format(topic=topic), ORDERS,
                          source=client)
    return follow(server, file), file


def test_kill_the_broker_while_it_is_read(server, own_broker, topic, tmp_path):
    feed = Feed(own_broker, topic, seed_of("broker"))
    feed.send()
    running, file = start_following(server, own_broker.address, topic, tmp_path)
    sending = threading.Thread(target=feed.send_on, args=(6,))
    sending.start()
    for _ in range(2):
        time.sleep(0.7)
        own_broker.kill()
        time.sleep(0.3)
        own_broker.start()
    sending.join()
    feed.sender.flush()
    wait_for(lambda: landed_or_zero(server) == feed.number)
    assert running.poll() is None, running.stderr.read()
    running.kill()
    assert tasks_of(server)["k.events"]["state"] == "RUNNING"
    run(server, file)
    feed.check(server)


def test_a_broker_that_hangs(server, own_broker, topic, tmp_path):
    feed = Feed(own_broker, topic, seed_of("hang"))
    feed.send()
    feed.sender.flush()
    running, file = start_following(server, own_broker.address, topic, tmp_path)
    wait_for(lambda: landed_or_zero(server) == feed.number)
    own_broker.pause()
    try:
        begin = time.monotonic()
        assert tasks_of(server)["k.events"]["state"] == "RUNNING"
        assert server.sql("SELECT count(*) AS c FROM landing.events") == [{"c": feed.number}]
        server.run("task", "stop", "k.events")
        wait_for(lambda: tasks_of(server)["k.events"]["state"] == "STOPPED", seconds=15)
        assert time.monotonic() - begin < 15
        server.run("task", "start", "k.events")
        time.sleep(1)
    finally:
        own_broker.resume()
    feed.send()
    feed.sender.flush()
    wait_for(lambda: landed_or_zero(server) == feed.number)
    running.kill()
    run(server, file)
    feed.check(server)


def test_a_network_that_cuts_swallows_and_delays(server, own_broker, topic, tmp_path):
    feed = Feed(own_broker, topic, seed_of("network"))
    feed.send()
    # The library waits a minute for an answer otherwise.
    client = "client: {socket.timeout.ms: 2000, session.timeout.ms: 2000}\n"
    with own_broker.proxy() as proxy:
        running, file = start_following(server, own_broker.proxied_address, topic, tmp_path,
                                        client)
        wait_for(lambda: landed_or_zero(server) > 0)
        for mode in ("cut", "blackhole", "delay", "reset"):
            feed.send()
            if mode in ("cut", "reset"):
                proxy.cut()
            elif mode == "blackhole":
                proxy.mode = "blackhole"
            else:
                proxy.delay_seconds = 0.05
            time.sleep(0.1 if mode == "reset" else 1)
            feed.send()
            proxy.mode, proxy.delay_seconds = "pass", 0.0
        feed.sender.flush()
        wait_for(lambda: landed_or_zero(server) == feed.number)
        assert running.poll() is None, running.stderr.read()
        running.kill()
        run(server, file)
        feed.check(server)


def test_a_server_stops_while_the_broker_is_gone(own_broker, topic, tmp_path):
    feed = Feed(own_broker, topic, seed_of("gone"))
    feed.send()
    feed.sender.flush()
    with Server(tmp_path / "home") as server:
        running, file = start_following(server, own_broker.address, topic, tmp_path)
        wait_for(lambda: landed_or_zero(server) == feed.number)
        running.kill()
        own_broker.kill()
        time.sleep(0.5)
        begin = time.monotonic()
        server.stop()
        assert time.monotonic() - begin < 15
        own_broker.start()
        server.start()
        feed.send()
        feed.sender.flush()
        wait_for(lambda: landed_or_zero(server) == feed.number)
        run(server, file)
        feed.check(server)
