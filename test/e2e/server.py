"""A tarn server on a fresh home, for tests and the demo."""

import json
import os
import pathlib
import select
import signal
import subprocess
import time
import urllib.request

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DATA = REPOSITORY / "test" / "data"
# Of the tests; a server refuses variables with its prefix that it does not know.
TEST_VARIABLES = ("TARN_SEED", "TARN_ROUNDS", "TARN_SOAK_MINUTES", "TARN_ICEBERG_TEST")


def binary():
    return os.environ.get("TARN_BINARY", str(REPOSITORY / "build" / "release" / "tarn"))


class CommandFailed(Exception):
    def __init__(self, arguments, code, output, errors):
        super().__init__(f"tarn {' '.join(arguments)}: exit {code}\n{output}{errors}")
        self.code = code
        self.errors = errors


class Server:
    """Starts `tarn serve`, waits until it listens, and runs commands against it."""

    def __init__(self, home, environment=None):
        self.home = pathlib.Path(home)
        self.process = None
        self.url = None
        self.environment = environment or {}

    def start(self, environment=None):
        variables = {**os.environ, **self.environment, **(environment or {})}
        for name in TEST_VARIABLES:
            variables.pop(name, None)
        self.log = open(self.home.parent / (self.home.name + ".log"), "ab")
        self.process = subprocess.Popen(
            [binary(), "serve", "--home", str(self.home), "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=self.log, env=variables)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self.process.stdout], [], [], 0.1)
            if ready:
                line = self.process.stdout.readline().decode()
                if line.startswith("listening on "):
                    self.url = line.removeprefix("listening on ").strip()
                    return self
                break
            if self.process.poll() is not None:
                break
        self.kill()
        raise RuntimeError("the server did not start:\n" + self.log_text())

    def log_text(self):
        return (self.home.parent / (self.home.name + ".log")).read_text(errors="replace")

    def token(self):
        return (self.home / "admin-token").read_text().strip()

    def run(self, *arguments, check=True, timeout=300):
        """Runs one command; returns its standard output."""
        done = subprocess.run(
            [binary(), *arguments, "--url", self.url, "--home", str(self.home)],
            capture_output=True, text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise CommandFailed(arguments, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def bytes(self, *arguments):
        """What a command writes, byte for byte."""
        return subprocess.run(
            [binary(), *arguments, "--url", self.url, "--home", str(self.home)],
            stdout=subprocess.PIPE, check=True, timeout=300).stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--json"))

    def sql(self, query, *arguments):
        """Rows of a query as a list of dictionaries."""
        return json.loads(self.run("sql", query, "--format", "json", *arguments))

    def stop(self):
        """Drains; fails when the server does not end by itself."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            code = self.process.wait(timeout=60)
            if code != 0:
                raise RuntimeError(f"the server ended with {code}:\n" + self.log_text())

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        try:
            self.stop()
        finally:
            self.kill()


def tasks_of(server):
    """The tasks that `tarn status` lists, by name."""
    return {task["task"]: task for task in server.json("status")["tasks"]}


def wait_for(condition, seconds=30):
    """Returns what `condition` returns once that is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


def follow(server, file):
    """`tarn run` in the background; the pipeline goes on when it is killed."""
    return subprocess.Popen(
        [binary(), "run", str(file), "--url", server.url, "--home", str(server.home)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def metrics_of(server):
    with urllib.request.urlopen(server.url + "/metrics") as answer:
        return answer.read().decode()
