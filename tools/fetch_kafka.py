"""Fetches the Kafka broker that tests start, once per machine.

Maven copies the jars of tools/kafka/pom.xml; each must have the sha256 that checksums.txt beside it
says, and no other may come along. The directory in the cache then has

    libs/         the jars
    formatted/    the data of a broker that has never run; it names no port, so copies of it start
    classes.jsa   what the class loader would do on every start, done once (halves the start)

It costs about 40 s of one core, 75 MB of downloads and 92 MB of disk, the first time only.
"""

import fcntl
import hashlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

import fetch_deps
import fetch_jars

PINS = pathlib.Path(__file__).resolve().parent / "kafka"
VERSION = "4.4.0"
MAIN_CLASS = "kafka.Kafka"
START_SECONDS_MAX = 120
# Client sockets of this machine take ports from 32768 on: below that a port stays ours.
PORTS = range(20000, 32000)


def home() -> pathlib.Path:
    """The directory of this broker under this JVM, whether it is there or not."""
    jvm = subprocess.run([fetch_jars.java(), "-version"], stderr=subprocess.PIPE, check=True).stderr
    pins = (PINS / "pom.xml").read_bytes() + (PINS / "checksums.txt").read_bytes()
    digest = hashlib.sha256(pins + jvm).hexdigest()[:10]
    return fetch_deps.cache_root() / f"kafka-{VERSION}-{digest}"


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on."""
    found = []
    while len(found) < count:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


def properties(data: pathlib.Path, broker: int, controller: int, more: dict = {}) -> str:
    """The configuration of a broker alone, which is its own controller."""
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": data,
        "num.partitions": 4,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "num.network.threads": 2,
        "num.io.threads": 2,
        **more,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def command(home_directory: pathlib.Path, *options: str, main: str = MAIN_CLASS) -> list[str]:
    """What starts the broker; its arguments follow."""
    jars = ":".join(str(path) for path in sorted((home_directory / "libs").iterdir()))
    return [fetch_jars.java(), "-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData",
            "-Xlog:disable", "-Xlog:all=error:stderr",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            *options, "-cp", jars, main]


def broker_command(home_directory: pathlib.Path, configuration: pathlib.Path) -> list[str]:
    archive = home_directory / "classes.jsa"
    return [*command(home_directory, f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"),
            str(configuration)]


def run_java(arguments: list[str]) -> None:
    done = subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise fetch_deps.FetchError(f"{arguments[-1]}: exit {done.returncode}\n{done.stderr}")


def format_data(staging: pathlib.Path, configuration: pathlib.Path) -> None:
    formatted = staging / "formatted"
    configuration.write_text(properties(formatted, *free_ports(2)))
    run_java([*command(staging, "-XX:TieredStopAtLevel=1", main="kafka.tools.StorageTool"),
              "format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", str(configuration)])


def archive_classes(final: pathlib.Path, configuration: pathlib.Path, data: pathlib.Path) -> None:
    """Starts a broker once and has the JVM keep the classes that it loaded."""
    shutil.copytree(final / "formatted", data)
    broker, controller = free_ports(2)
    configuration.write_text(properties(data, broker, controller))
    archive = final / "classes.jsa"
    process = subprocess.Popen(
        [*command(final, f"-XX:ArchiveClassesAtExit={archive}"), str(configuration)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_open(process, broker)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=START_SECONDS_MAX)
    finally:
        process.kill()
        process.wait()
    if not archive.exists():
        print("fetch_kafka: this JVM keeps no classes; brokers start slower", file=sys.stderr)


def wait_until_open(process: subprocess.Popen, port: int) -> None:
    """Returns when something listens on `port`; fails when the process ends before."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise fetch_deps.FetchError(f"the broker did not start; exit code {process.poll()}")


def fetch() -> pathlib.Path:
    """Returns the directory of the broker, filling it first if it is missing."""
    final = home()
    complete = final / ".complete"
    if complete.exists():
        return final
    root = final.parent
    root.mkdir(parents=True, exist_ok=True)
    with open(root / ".kafka.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if complete.exists():
            return final
        print(f"fetching kafka into {final}", file=sys.stderr)
        shutil.rmtree(final, ignore_errors=True)
        final.mkdir()
        scratch = root / f".kafka-{os.getpid()}"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        try:
            # In place and not renamed: the archive of classes names the jars by their paths.
            fetch_jars.copy_pinned_jars(PINS, final / "libs")
            format_data(final, scratch / "server.properties")
            for path in (final / "formatted").rglob("*"):
                path.chmod(path.stat().st_mode | 0o600)
            archive_classes(final, scratch / "server.properties", scratch / "data")
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        complete.touch()
    return final
