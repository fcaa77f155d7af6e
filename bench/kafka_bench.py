"""From a Kafka topic to an Iceberg table, against bare programs that read the same topic.

append     JSON of 159 bytes in 4 partitions of a broker on this machine into an append-mode table;
           in the same run: librdkafka alone (the bound), librdkafka with the columns and one
           Parquet file out of them (kafka_reader.cc), and PyIceberg appending what a Python
           consumer reads (on a part of the messages). Target: >= 500k messages/s.
merge      Debezium messages of 467 bytes, updates and deletes over 1M keys, into a merged table,
           applies included; in the same run: librdkafka alone.
freshness  the same JSON at a fixed rate: from the call that sends a message until a query sees its
           row. Target: p99 <= commit interval + 1 s.

Prints processor seconds of the server per million messages and its peak RSS beside each rate.

Usage: kafka_bench.py [append|merge|freshness] [messages, for freshness those of a second]
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "test" / "e2e"))

import kafka_broker  # noqa: E402
from kafka_pipeline import landed, write_pipeline  # noqa: E402
from pipeline_bench import peak_rss_bytes  # noqa: E402
from server import REPOSITORY, Server, follow, wait_for  # noqa: E402

PARTITIONS = 4
KEYS = 1_000_000
TOPIC = "bench"
RATE_PER_SECOND = 20_000
FRESH_SECONDS = 30
ASK_SECONDS = 0.05  # Between two queries that look for new rows.
COMMIT_SECONDS = 1.0


def flat_messages(count):
    """Values of 159 bytes, but for the growing number."""
    maker = random.Random(1)
    customers = [f"c{maker.randrange(100_000):06}" for _ in range(10_000)]
    prices = [f"{maker.randrange(100, 99_999) / 100:.2f}" for _ in range(10_000)]
    for number in range(count):
        some = number * 7919 % 10_000
        yield number % PARTITIONS, (
            f'{{"id": {number:8}, "customer": "{customers[some]}", "product": "p{some:05}", '
            f'"quantity": {number % 9}, "price": {prices[some]:>6}, "paid": true, '
            f'"created": "2026-11-{some % 28 + 1:02}T10:00:00Z", '
            f'"n": "order {number % 1000:03}"}}').encode()


def change_messages(count):
    """Debezium updates and some deletes of 467 bytes, those of one key in one partition."""
    maker = random.Random(2)
    for position in range(count):
        key = maker.randrange(KEYS)
        time_ms = 1_796_026_158_137 + position // 100
        source = (f'{{"version":"3.6.1.Final","connector":"postgresql","name":"srv","ts_ms":'
                  f'{time_ms},"snapshot":"false","db":"shopdb","sequence":"[\\"68519464\\",'
                  f'\\"68519520\\"]","schema":"shop","table":"orders","txId":{position},"lsn":'
                  f'{68_519_464 + position},"xmin":null}}')
        if position % 10 == 9:
            images, operation = f'"before":{{"id":{key}}},"after":null', "d"
        else:
            images = (f'"before":null,"after":{{"id":{key},"name":"name {key % 10_000}","city":'
                      f'"Zurich","amount":{position % 10**6 / 100},"version":{position},'
                      f'"note":"{"to the door " * 6}{key % 100:02}"}}')
            operation = "u"
        yield key % PARTITIONS, (f'{{{images},"source":{source},"transaction":null,'
                                 f'"op":"{operation}","ts_ms":{time_ms}}}').encode()


def fill(broker, messages, count):
    """Sends all messages; returns their mean size."""
    broker.create_topic(TOPIC, PARTITIONS)
    size, start = 0, time.monotonic()
    with broker.producer(**{"linger.ms": 50, "batch.size": 1 << 20}) as sender:
        for partition, value in messages(count):
            size += len(value)
            sender.send(TOPIC, value, partition=partition)
    print(f"{count} messages of {size / count:.0f} bytes sent in {time.monotonic() - start:.0f} s",
          flush=True)
    return size / count


def cpu_seconds(pid):
    """User and system time of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report(name, count, seconds, cpu, more=""):
    print(f"{name:<34} {count / seconds / 1e3:7.0f}k messages/s   {cpu / count * 1e6:6.2f} CPU s "
          f"per million   {more}", flush=True)


def measure_tarn(place, broker, count, transform, content):
    file = write_pipeline(place, broker.address, f"topics: [{TOPIC}]\n{content}", transform)
    server = Server(place / "home").start()
    before = cpu_seconds(server.process.pid)
    start = time.monotonic()
    server.run("run", str(file), "--once", timeout=3600)
    seconds = time.monotonic() - start
    cpu = cpu_seconds(server.process.pid) - before
    assert landed(server) == count
    rss = peak_rss_bytes(server.process.pid) / 2**20
    report("tarn, whole path", count, seconds, cpu, f"peak RSS {rss:.0f} MiB")
    return server, seconds


def measure_reader(place, broker, count, what, name):
    """Runs kafka_reader; returns its seconds."""
    program = REPOSITORY / "build" / "release" / "bench" / "kafka_reader"
    done = subprocess.run([program, broker.address, TOPIC, str(count), what, str(place / "reader")],
                          check=True, stdout=subprocess.PIPE)
    found = json.loads(done.stdout)
    report(name, found["messages"], found["seconds"], found["cpu_seconds"])
    return found["seconds"]


def measure_pyiceberg(place, broker, count):
    """A Python consumer and PyIceberg, 100,000 messages a commit."""
    import pyarrow
    from confluent_kafka import Consumer, TopicPartition
    from pyiceberg.catalog.sql import SqlCatalog

    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "peer",
                         "enable.auto.commit": False, "queued.min.messages": 1_000_000})
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    catalog = SqlCatalog("peer", uri=f"sqlite:///{place}/peer.db",
                         warehouse=(place / "peer").as_uri())
    catalog.create_namespace("bench")
    table, left = None, count
    start, before = time.monotonic(), time.process_time()
    while left > 0:
        rows = []
        while len(rows) < min(100_000, left):
            batch = consumer.consume(min(10_000, left - len(rows)), timeout=30)
            rows += [json.loads(message.value()) for message in batch]
        batch = pyarrow.Table.from_pylist(rows)
        table = table or catalog.create_table("bench.orders", schema=batch.schema)
        table.append(batch)
        left -= len(rows)
    report("Python consumer and PyIceberg", count, time.monotonic() - start,
           time.process_time() - before, f"{count} messages")
    consumer.close()


def bench_append(place, broker, count):
    fill(broker, flat_messages, count)
    # What was sent last is in the page cache for all of them; the order does not matter.
    bound = measure_reader(place, broker, count, "consume", "librdkafka alone")
    bare = measure_reader(place, broker, count, "parquet", "librdkafka + columns + Parquet")
    server, seconds = measure_tarn(place, broker, count, "flat: {from: events, mode: append}\n", "")
    assert server.sql("SELECT count(*) AS c, sum(id) AS s FROM flat.flat") == [
        {"c": count, "s": count * (count - 1) // 2}]
    server.kill()
    print(f"append: {count / seconds / 1e3:.0f}k messages/s (target 500k); {bare / seconds:.2f} of "
          f"the bare program, {bound / seconds:.2f} of librdkafka alone", flush=True)
    measure_pyiceberg(place, broker, min(count, 500_000))


def bench_merge(place, broker, count):
    fill(broker, change_messages, count)
    bound = measure_reader(place, broker, count, "consume", "librdkafka alone")
    server, seconds = measure_tarn(place, broker, count, "orders: {from: events, key: [id]}\n",
                                   "content: {type: json, envelope: debezium}")
    rows = server.sql("SELECT count(*) AS c, count(DISTINCT id) AS d FROM orders.orders")[0]
    assert rows["c"] == rows["d"] > 0
    server.kill()
    print(f"merge: {count / seconds / 1e3:.0f}k messages/s; {bound / seconds:.2f} of librdkafka "
          "alone", flush=True)


class Watch:
    """Asks over and over which rows a query sees, and remembers when it saw them first."""

    def __init__(self, server):
        self.server = server
        self.seen = []  # (when, number).
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ended.is_set():
            found = self.ask()
            if found is not None:
                self.seen.append((time.monotonic(), found))
            time.sleep(ASK_SECONDS)

    def ask(self):
        """All messages up to this number are rows."""
        query = ("SELECT min(newest) AS n FROM (SELECT max(id) AS newest FROM flat.flat "
                 f"WHERE id >= 0 GROUP BY id % {PARTITIONS}) HAVING count(*) = {PARTITIONS}")
        request = urllib.request.Request(
            self.server.url + "/tarn/v1/sql", json.dumps({"query": query}).encode(),
            {"Authorization": f"Bearer {self.server.token()}", "Accept": "application/json",
             "Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            rows = json.load(answer)
        return rows[0]["n"] if rows else None

    def waits(self, sent):
        """Seconds until each message was seen; `sent` has the time of sending by id."""
        waits, upto = [], 0
        for when, newest in self.seen:
            while upto < len(sent) and upto <= newest:
                waits.append(when - sent[upto])
                upto += 1
        return waits


def send_steadily(broker, count, rate):
    """Sends `count` messages, `rate` a second; returns when each was sent."""
    sent = []
    start = time.monotonic()
    with broker.producer() as sender:
        for partition, value in flat_messages(count):
            sent.append(time.monotonic())
            sender.send(TOPIC, value, partition=partition)
            if len(sent) % 200 == 0:
                ahead = start + len(sent) / rate - time.monotonic()
                time.sleep(max(0.0, ahead))
    return sent


def bench_freshness(place, broker, rate):
    count = rate * FRESH_SECONDS
    broker.create_topic(TOPIC, PARTITIONS)
    broker.produce(TOPIC, [b'{"id": -1}'])
    file = write_pipeline(place, broker.address, f"""\
        topics: [{TOPIC}]
        commit: {{interval: {COMMIT_SECONDS:.0f}s}}
        """, "flat: {from: events, mode: append}\n")
    with Server(place / "home") as server:
        server.run("run", str(file), "--once")
        running = follow(server, file)
        time.sleep(2)
        before = cpu_seconds(server.process.pid)
        watch = Watch(server)
        watch.thread.start()
        sent = send_steadily(broker, count, rate)
        wait_for(lambda: watch.seen and watch.seen[-1][1] >= count - PARTITIONS, seconds=60)
        watch.ended.set()
        watch.thread.join()
        cpu = cpu_seconds(server.process.pid) - before
        running.kill()
        running.wait()
        waits = sorted(watch.waits(sent))
    assert len(waits) >= count - PARTITIONS, (len(waits), count)
    print(f"freshness at {rate} messages/s, commit interval {COMMIT_SECONDS:.0f} s: p50 "
          f"{waits[len(waits) // 2]:.2f} s, p99 {waits[len(waits) * 99 // 100]:.2f} s, max "
          f"{waits[-1]:.2f} s (target p99 {COMMIT_SECONDS + 1:.0f} s); {cpu / count * 1e6:.1f} "
          "CPU s per million, queries of the watcher included", flush=True)


BENCHES = {"append": (bench_append, 6_000_000), "merge": (bench_merge, 2_000_000),
           "freshness": (bench_freshness, RATE_PER_SECOND)}


def main():
    names = [name for name in sys.argv[1:] if name in BENCHES] or list(BENCHES)
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    for name in names:
        print(f"-- {name}", flush=True)
        bench, count = BENCHES[name]
        place = pathlib.Path(tempfile.mkdtemp(prefix="tarn-bench-", dir=os.environ.get("TMPDIR")))
        (place / "reader").mkdir()
        try:
            with kafka_broker.Broker(place / "broker") as broker:
                bench(place, broker, numbers[0] if numbers else count)
        finally:
            shutil.rmtree(place)


if __name__ == "__main__":
    main()
