"""A Trino over the catalog of a server: what tools/fetch_trino.py fetches, and its client."""

import os
import pathlib
import subprocess
import sys
import time

import requests

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import fetch_kafka  # noqa: E402
import fetch_trino  # noqa: E402

START_SECONDS_MAX = 600
MEMORY = "1400m"


class TrinoError(Exception):
    """What Trino said to a statement."""


class Trino:
    """One coordinator that is its own worker. Names without a catalog are of the catalog `tarn`."""

    def __init__(self, folder, uri, token):
        self.folder = pathlib.Path(folder)
        self.home = fetch_trino.fetch()
        (self.port,) = fetch_kafka.free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self._configure(uri, token)
        self.log = open(self.folder / "trino.log", "wb")
        self.process = subprocess.Popen(
            self._command(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=subprocess.STDOUT)
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _configure(self, uri, token):
        catalog = {
            "connector.name": "iceberg",
            "iceberg.catalog.type": "rest",
            "iceberg.rest-catalog.uri": uri,
            "iceberg.rest-catalog.security": "OAUTH2",
            "iceberg.rest-catalog.oauth2.token": token,
            "iceberg.rest-catalog.nested-namespace-enabled": "true",
            "fs.hadoop.enabled": "true",  # For file:, which Trino has no own access to.
        }
        server = {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": self.port,
            "discovery.uri": self.url,
            "query.max-memory": "512MB",
            "query.max-memory-per-node": "512MB",
            "memory.heap-headroom-per-node": "256MB",
            "catalog.management": "static",
        }
        folder = self.folder / "etc" / "catalog"
        folder.mkdir(parents=True)
        for path, settings in ((folder / "tarn.properties", catalog),
                               (self.folder / "etc" / "config.properties", server)):
            path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        # Trino looks for plugins below its working directory.
        for name in ("lib", "plugin"):
            os.symlink(self.home / name, self.folder / name)

    def _command(self):
        options = ["-server", f"-Xmx{MEMORY}", "-XX:+UseG1GC", "-XX:+ExitOnOutOfMemoryError",
                   "-XX:TieredStopAtLevel=1", "-Djdk.attach.allowAttachSelf=true",
                   "-Djdk.nio.maxCachedBufferSize=2000000", "-Dfile.encoding=UTF-8",
                   "--add-opens=java.base/java.nio=ALL-UNNAMED",
                   "--enable-native-access=ALL-UNNAMED"]
        settings = {
            "config": "etc/config.properties",
            "node.environment": "test",
            "node.id": "n1",
            "node.data-dir": self.folder / "data",
            "node.internal-address": "127.0.0.1",
            "node.bind-ip": "127.0.0.1",
        }
        options += [f"-D{name}={value}" for name, value in settings.items()]
        return [str(fetch_trino.java()), *options, "-cp", "lib/*",
                "io.trino.server.TrinoServer"]

    def _wait(self):
        deadline = time.monotonic() + START_SECONDS_MAX
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                if not requests.get(f"{self.url}/v1/info", timeout=5).json()["starting"]:
                    return
            except (OSError, ValueError):
                pass
            time.sleep(0.2)
        text = (self.folder / "trino.log").read_text(errors="replace")
        raise TrinoError(f"Trino did not start; exit code {self.process.poll()}\n{text[-4000:]}")

    def sql(self, statement):
        """Rows of one statement as a list of dictionaries."""
        headers = {"X-Trino-User": "test", "X-Trino-Catalog": "tarn", "X-Trino-Time-Zone": "UTC"}
        answer = requests.post(f"{self.url}/v1/statement", data=statement.encode(),
                               headers=headers, timeout=120).json()
        names, rows = [], []
        while True:
            if "error" in answer:
                raise TrinoError(f"{statement}\n{answer['error'].get('message')}")
            names = [column["name"] for column in answer.get("columns", [])] or names
            rows += answer.get("data", [])
            if "nextUri" not in answer:
                return [dict(zip(names, row)) for row in rows]
            answer = requests.get(answer["nextUri"], headers=headers, timeout=120).json()

    def values(self, statement):
        """The rows as tuples."""
        return [tuple(row.values()) for row in self.sql(statement)]

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
