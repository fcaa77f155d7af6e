"""Kafka brokers for tests, benchmark and demo: a real one, one in memory, and a bad network.

`Broker` runs the pinned Apache Kafka of tools/fetch_kafka.py on data of its own, which outlives
kills and restarts. `MemoryBroker` runs kfake: up in 0.1 s, everything gone when it ends. Both have
the same calls for topics and messages. `Proxy` stands between a client and a broker.
"""

import functools
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from confluent_kafka import (OFFSET_INVALID, Consumer, KafkaError, KafkaException, Producer,
                             TopicPartition)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from server import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools"))

import fetch_kafka  # noqa: E402

SECONDS_MAX = 60
USER, PASSWORD = "lander", "correct-horse"


class Topics:
    """What tests do to a cluster, through the address of a broker in `self.address`."""

    address: str

    @functools.cached_property
    def admin(self):
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0,
                            "reconnect.backoff.max.ms": 200})

    def create_topic(self, name, partitions=1, **settings):
        """Makes a topic; `retention_ms=1` stands for retention.ms=1."""
        config = {key.replace("_", "."): str(value) for key, value in settings.items()}
        made = self.admin.create_topics([NewTopic(name, partitions, 1, config=config)])
        made[name].result(SECONDS_MAX)
        self.wait_for_partitions(name, partitions)

    def wait_for_partitions(self, name, count):
        """A topic is made before all of it can be written to."""
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            topic = self.admin.list_topics(name, timeout=SECONDS_MAX).topics[name]
            leaders = [part.leader for part in topic.partitions.values()]
            if topic.error is None and len(leaders) == count and min(leaders) >= 0:
                return
            time.sleep(0.05)
        raise RuntimeError(f"topic {name} has not its {count} partitions")

    def add_partitions(self, name, total):
        self.admin.create_partitions([NewPartitions(name, total)])[name].result(SECONDS_MAX)
        self.wait_for_partitions(name, total)

    def delete_topic(self, name):
        """Deletes a topic and waits until it is gone."""
        self.admin.delete_topics([name])[name].result(SECONDS_MAX)
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            if name not in self.admin.list_topics(timeout=SECONDS_MAX).topics:
                return
            time.sleep(0.05)
        raise RuntimeError(f"topic {name} is still there")

    def delete_records(self, name, before, partition=0):
        """Moves the low watermark: messages before the offset are gone, as after retention."""
        where = TopicPartition(name, partition, before)
        deleted = self.admin.delete_records([where])
        deleted[where].result(SECONDS_MAX)

    def delete_group(self, name):
        self.admin.delete_consumer_groups([name])[name].result(SECONDS_MAX)

    def groups(self):
        listed = self.admin.list_consumer_groups().result(SECONDS_MAX)
        return [group.group_id for group in listed.valid]

    def committed(self, group, topic, partition=0):
        """The offset that a group has committed, None without one."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": group})
        deadline = time.monotonic() + SECONDS_MAX
        try:
            while True:
                try:
                    where = [TopicPartition(topic, partition)]
                    found = consumer.committed(where, timeout=SECONDS_MAX)
                    return None if found[0].offset == OFFSET_INVALID else found[0].offset
                except KafkaException as error:
                    # A broker that is busy loses its coordinator for a moment.
                    if not error.args[0].retriable() or time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
        finally:
            consumer.close()

    def offsets(self, name, spec):
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            partitions = self.admin.list_topics(name, timeout=SECONDS_MAX).topics[name].partitions
            where = {TopicPartition(name, number): spec for number in partitions}
            found = self.admin.list_offsets(where)
            try:
                return {place.partition: future.result(SECONDS_MAX).offset
                        for place, future in found.items()}
            except KafkaException as error:
                # Leaders are not known yet to a broker that just started.
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def end_offsets(self, name):
        return self.offsets(name, OffsetSpec.latest())

    def start_offsets(self, name):
        return self.offsets(name, OffsetSpec.earliest())

    def read(self, topic):
        """Partition and offset of each committed message that is there now."""
        ends = self.end_offsets(topic)
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "readers",
                             "enable.auto.commit": False, "enable.partition.eof": True})
        try:
            consumer.assign([TopicPartition(topic, number, 0) for number in ends])
            found, left = [], len(ends)
            while left:
                message = consumer.poll(SECONDS_MAX)
                if message is None:
                    raise RuntimeError(f"topic {topic} cannot be read to its end")
                if message.error():
                    left -= message.error().code() == KafkaError._PARTITION_EOF
                else:
                    found.append((message.partition(), message.offset()))
            return found
        finally:
            consumer.close()

    def producer(self, **settings):
        return Sender(self.address, settings)

    def produce(self, topic, values, **common):
        """Sends values (bytes, text or None), each `(value, {key=, partition=, …})` or bare."""
        with self.producer() as sender:
            for value in values:
                value, own = value if isinstance(value, tuple) else (value, {})
                sender.send(topic, value, **{**common, **own})

    def transaction(self, name):
        """A producer inside a begun transaction; end it with commit() or abort()."""
        sender = self.producer(**{"transactional.id": name, "message.timeout.ms": 30_000})
        sender.producer.init_transactions(SECONDS_MAX)
        sender.producer.begin_transaction()
        return sender


class Sender:
    """A producer that says when something was lost. What goes on over a broker that is killed needs
    `enable.idempotence=True`, which costs a second; else messages may come twice.
    """

    def __init__(self, address, settings):
        self.failures = []
        self.producer = Producer({
            "bootstrap.servers": address, "acks": "all", "linger.ms": 5,
            "delivery.report.only.error": True, "on_delivery": self.failed, "log_level": 0,
            "queue.buffering.max.messages": 1_000_000, "queue.buffering.max.kbytes": 1 << 20,
            "message.timeout.ms": 120_000, "topic.metadata.refresh.interval.ms": 1000,
            "reconnect.backoff.max.ms": 500, **settings})

    def failed(self, error, _message):
        self.failures.append(error)

    def send(self, topic, value, **fields):
        while True:
            try:
                self.producer.produce(topic, value, **fields)
                return
            except BufferError:
                self.producer.poll(0.01)

    def flush(self):
        """Waits until the broker has everything."""
        left = self.producer.flush(2 * SECONDS_MAX)
        if left or self.failures:
            raise RuntimeError(f"{left} messages were not sent: {self.failures[:3]}")

    def commit(self):
        self.producer.commit_transaction(SECONDS_MAX)

    def abort(self):
        self.flush()
        self.producer.abort_transaction(SECONDS_MAX)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.flush()


def wait_for_answer(address, process, log):
    """Returns when the broker at `address` answers a request for metadata."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0,
                         "reconnect.backoff.max.ms": 100})
    deadline = time.monotonic() + fetch_kafka.START_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        try:
            admin.list_topics(timeout=0.5)
            return
        except KafkaException:
            pass
    raise RuntimeError("the broker did not start:\n" + pathlib.Path(log).read_text()[-5000:])


class Running:
    """A broker's process."""

    process = None

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()


class Broker(Running, Topics):
    """Apache Kafka, alone and its own controller. Its ports stay the same over restarts.

    `address` takes anybody; `sasl_address` asks for USER and PASSWORD (SASL/PLAIN); clients that
    begin at `proxied_address` stay on the proxy there, which `proxy()` opens.
    """

    def __init__(self, folder, **settings):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        ports = fetch_kafka.free_ports(5)
        self.port, self.controller_port, self.sasl_port, self.inner_port, self.proxy_port = ports
        self.address = f"127.0.0.1:{self.port}"
        self.sasl_address = f"127.0.0.1:{self.sasl_port}"
        self.proxied_address = f"127.0.0.1:{self.proxy_port}"
        self.settings = {key.replace("_", "."): value for key, value in settings.items()}
        self.log = self.folder / "broker.log"

    def configuration(self):
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        listeners = {"PLAINTEXT": self.port, "LOGIN": self.sasl_port, "PROXIED": self.inner_port,
                     "CONTROLLER": self.controller_port}
        advertised = {**listeners, "PROXIED": self.proxy_port}
        del advertised["CONTROLLER"]
        return fetch_kafka.properties(
            self.folder / "data", self.port, self.controller_port, {
                "listeners": ",".join(f"{name}://127.0.0.1:{port}"
                                      for name, port in listeners.items()),
                "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}"
                                                 for name, port in advertised.items()),
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
                                                  "PROXIED:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
                "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
                "listener.name.login.plain.sasl.jaas.config":
                    f'{login} user_{USER}="{PASSWORD}";',
                "auto.create.topics.enable": "false",
                "message.max.bytes": 32 << 20, "socket.request.max.bytes": 128 << 20,
                # A killed broker comes back when its last life is counted as ended.
                "broker.session.timeout.ms": 1500, "broker.heartbeat.interval.ms": 300,
                "log.retention.ms": -1,  # Messages of tests have old times.
                # Compaction and retention within a test's patience.
                "log.initial.task.delay.ms": 100, "log.cleaner.backoff.ms": 100,
                "log.retention.check.interval.ms": 200, **self.settings})

    def start(self):
        home = fetch_kafka.fetch()
        if not (self.folder / "data").exists():
            shutil.copytree(home / "formatted", self.folder / "data")
        file = self.folder / "server.properties"
        file.write_text(self.configuration())
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(fetch_kafka.broker_command(home, file), stdout=log,
                                            stdin=subprocess.DEVNULL, stderr=log)
        try:
            wait_for_answer(self.address, self.process, self.log)
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self):
        """Ends in good order."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(SECONDS_MAX)

    def proxy(self):
        return Proxy(self.proxy_port, self.inner_port)


class MemoryBroker(Running, Topics):
    """kfake: another implementation of the protocol, without disk."""

    def __init__(self, folder):
        self.log = pathlib.Path(folder) / "kfake.log"

    def start(self):
        script = REPOSITORY / "tools" / "services.py"
        done = subprocess.run([sys.executable, script, "kfake"], check=True,
                              stdout=subprocess.PIPE, text=True)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([done.stdout.strip()], stdout=subprocess.PIPE,
                                            stderr=log, text=True)
        line = self.process.stdout.readline()
        self.address = line.removeprefix("listening on ").strip()
        wait_for_answer(self.address, self.process, self.log)
        return self


class Proxy:
    """A TCP proxy that can fail: `mode` is one of

    pass       everything goes through, `delay_seconds` late
    blackhole  connections stay, no byte moves
    cut        connections are ended, new ones at once, too
    """

    def __init__(self, port, target_port):
        self.port = port
        self.target_port = target_port
        self.mode = "pass"
        self.delay_seconds = 0.0
        self.lock = threading.Lock()
        self.sockets = set()
        self.listener = None

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.mode = "cut"
        self.listener.close()
        self.end_connections()

    def cut(self):
        """Ends all connections, and all that come until `mode` is another."""
        self.mode = "cut"
        self.end_connections()

    def end_connections(self):
        with self.lock:
            for one in self.sockets:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.sockets.clear()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        if self.mode == "cut":
            client.close()
            return
        try:
            target = socket.create_connection(("127.0.0.1", self.target_port), timeout=5)
        except OSError:
            client.close()
            return
        target.settimeout(None)
        with self.lock:
            self.sockets |= {client, target}
        threading.Thread(target=self.pump, args=(client, target), daemon=True).start()
        self.pump(target, client)

    def pump(self, source, sink):
        try:
            while data := source.recv(1 << 16):
                time.sleep(self.delay_seconds)
                while self.mode == "blackhole":
                    time.sleep(0.02)
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            with self.lock:
                self.sockets.discard(one)


def resident_bytes(pid):
    """What a process holds of memory now."""
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
