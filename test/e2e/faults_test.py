"""Kills at every named point and at random moments: nothing lost, nothing twice, views right."""

import json
import os
import random
import signal
import subprocess
import threading
import time

import pytest

from changes import Changes
from server import CommandFailed, Server, binary

PIPELINE = """\
pipeline: p
sources:
  in: {{type: files, uri: {uri}}}
landing:
  events:
    source: in
    paths: ["*.jsonl"]
    commit: {{rows: 300, bytes: 1MiB, interval: 5s}}
transform:
  orders:
    from: events
    key: [id]
    history: true
    delete_when: "gone"
    apply: {{rows: 1%, min_rows: 200, bytes: 1MiB, files: 2}}
    snapshots: {{max_age: 1s, min_keep: 2, max_count: 5}}
"""

CRASH_POINTS = [
    "storage-before-publish", "storage-after-rename",
    "metastore-before-commit", "metastore-after-commit",
    "landing-before-commit", "landing-after-commit",
    "append-after-files", "append-after-commit",
    "apply-before-settle", "apply-after-files", "apply-after-commit",
    "lakehouse-before-commit", "catalog-before-pointer", "catalog-after-pointer",
]


class Feed(Changes):
    """Files of random changes and what the tables must show of them."""

    def __init__(self, folder, seed):
        super().__init__(seed)
        self.folder = folder

    def write_file(self, rows=200):
        lines = [json.dumps(change) for change in self.make(rows)]
        path = self.folder / f"{self.number:09}.jsonl"
        path.with_suffix(".part").write_text("\n".join(lines) + "\n")
        path.with_suffix(".part").rename(path)


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE.format(uri=folder.as_uri()))
    return tmp_path, folder, file


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_kill_at_a_named_point(place, point):
    tmp_path, folder, file = place
    feed = Feed(folder, seed=7)
    server = Server(tmp_path / "home")
    with server:
        feed.write_file()
        server.run("run", str(file), "--once")
        feed.check(server)
    for nth in (1, 3):
        feed.write_file()
        feed.write_file()
        try:
            server.start({"TARN_CRASH_POINT": f"{point}:{nth}"})
            server.run("run", str(file), "--once", timeout=60)
        except (CommandFailed, RuntimeError):
            pass
        server.kill()
        with server:
            server.run("run", str(file), "--once")
            feed.check(server)
            feed.check_counters(server)


def test_kill_at_random_moments(place):
    tmp_path, folder, file = place
    seed = int(os.environ.get("TARN_SEED", random.randrange(1 << 30)))
    rounds = int(os.environ.get("TARN_ROUNDS", "6"))
    print("seed", seed)
    feed = Feed(folder, seed)
    server = Server(tmp_path / "home")
    for _ in range(rounds):
        for _ in range(3):
            feed.write_file()
        server.start()
        command = subprocess.Popen(
            [binary(), "run", str(file), "--once", "--url", server.url, "--home",
             str(server.home)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(feed.random.uniform(0.02, 1.2))
        server.kill()
        command.wait(timeout=60)
    with server:
        server.run("run", str(file), "--once")
        feed.check(server)
        feed.check_counters(server)


def test_two_servers_on_one_home_are_refused(place):
    tmp_path, _, _ = place
    with Server(tmp_path / "home"):
        second = Server(tmp_path / "home")
        with pytest.raises(RuntimeError) as failure:
            second.start()
        assert "home" in str(failure.value)


def test_a_corrupt_metastore_is_refused(place):
    tmp_path, _, _ = place
    with Server(tmp_path / "home"):
        pass
    database = tmp_path / "home" / "metastore.db"
    database.write_bytes(b"this is no database" * 1000)
    with pytest.raises(RuntimeError) as failure:
        Server(tmp_path / "home").start()
    assert "metastore.db" in str(failure.value)
    assert database.read_bytes().startswith(b"this is no database")


def test_readers_see_whole_batches_while_changes_apply(place):
    tmp_path, folder, file = place
    feed = Feed(folder, seed=11)
    with Server(tmp_path / "home") as server:
        feed.write_file()
        server.run("run", str(file), "--once")
        failures = []
        ended = threading.Event()

        def read():
            while not ended.is_set():
                rows = server.sql("SELECT count(*) AS c, count(DISTINCT id) AS d "
                                  "FROM orders.orders")
                if rows[0]["c"] != rows[0]["d"]:
                    failures.append(rows[0])

        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(5):
            feed.write_file()
            server.run("run", str(file), "--once")
        ended.set()
        reader.join()
        assert not failures
        feed.check(server)


def test_sigterm_drains(place):
    tmp_path, _, _ = place
    server = Server(tmp_path / "home").start()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=30) == 0
