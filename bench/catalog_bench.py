#!/usr/bin/env python3
"""How fast the Iceberg catalog answers and commits, over HTTP, client and server on one machine.

    ./dev bench catalog_bench [-- --seconds N]

Each line is one question with the number that was aimed at:

    load refs         loadTable with snapshots=refs, a table of 10 snapshots
    load whole        loadTable of a table with 1,000 snapshots
    load unchanged    loadTable with If-None-Match: 304
    commit 64 tables  commits over 64 tables, 32 connections
    commit one table  commits of 8 connections to one table
    echo              GET /healthz: what the HTTP side alone costs

wrk sends the requests. Commits set a property and are durable; the commits of one table take turns.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "test" / "e2e"))

import requests  # noqa: E402
from server import Server  # noqa: E402

SCHEMA = {"type": "struct", "fields": [
    {"id": i, "name": f"column_{i}", "required": False, "type": "long"} for i in range(1, 21)]}

COMMITS = """
local tables = {tables}
local number = 0
wrk.method = "POST"
wrk.headers["Authorization"] = "Bearer {token}"
wrk.headers["Content-Type"] = "application/json"
math.randomseed(os.time())
function request()
  number = number + 1
  local path = "/iceberg/v1/namespaces/bench/tables/t" .. math.random(1, tables)
  local body = '{{"requirements":[],"updates":[{{"action":"set-properties","updates":{{"n":"' ..
    number .. "." .. math.random(1, 1000000000) .. '"}}}}]}}'
  return wrk.format(nil, path, nil, body)
end
"""


class Catalog:
    def __init__(self, server):
        self.url = server.url
        self.token = server.token()
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {self.token}"

    def call(self, method, path, **options):
        answer = self.session.request(method, f"{self.url}/iceberg/v1{path}", **options)
        answer.raise_for_status()
        return answer

    def make_table(self, name, snapshots):
        made = self.call("POST", "/namespaces/bench/tables",
                         json={"name": name, "schema": SCHEMA}).json()
        location = made["metadata"]["location"]
        for start in range(0, snapshots, 100):
            updates = []
            for number in range(start + 1, min(start + 100, snapshots) + 1):
                snapshot = {
                    "snapshot-id": number, "sequence-number": number,
                    "timestamp-ms": 1_900_000_000_000 + number, "schema-id": 0,
                    "manifest-list": f"{location}/metadata/snap-{number}-1-{uuid.uuid4()}.avro",
                    "summary": {
                        "operation": "append", "added-data-files": "4", "added-records": "40000",
                        "added-files-size": "4194304", "changed-partition-count": "1",
                        "total-records": str(40000 * number), "total-files-size": "4194304000",
                        "total-data-files": str(4 * number), "total-delete-files": "0",
                        "total-position-deletes": "0", "total-equality-deletes": "0"}}
                if number > 1:
                    snapshot["parent-snapshot-id"] = number - 1
                updates.append({"action": "add-snapshot", "snapshot": snapshot})
            updates.append({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch",
                            "snapshot-id": min(start + 100, snapshots)})
            self.call("POST", f"/namespaces/bench/tables/{name}",
                      json={"requirements": [], "updates": updates})


def run_wrk(url, seconds, connections, *, headers=(), script=None):
    """Requests a second; fails when any was answered with an error."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s"]
    for header in headers:
        command += ["-H", header]
    if script:
        command += ["-s", str(script)]
    done = subprocess.run([*command, url], capture_output=True, text=True, check=True)
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise SystemExit(f"{url}: {done.stdout}")
    return float(re.search(r"Requests/sec:\s*([\d.]+)", done.stdout).group(1))


def report(name, found, target=None):
    aim = f"   {found / target:5.2f} x of {target:,}/s" if target else ""
    print(f"{name:18} {found:10,.0f}/s{aim}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Server(pathlib.Path(folder) / "home") as server:
        catalog = Catalog(server)
        catalog.call("POST", "/namespaces", json={"namespace": ["bench"]})
        catalog.make_table("few", 10)
        catalog.make_table("many", 1000)
        for number in range(1, 65):
            catalog.make_table(f"t{number}", 0)
        bearer = f"Authorization: Bearer {catalog.token}"
        tables = f"{server.url}/iceberg/v1/namespaces/bench/tables"
        report("echo", run_wrk(server.url + "/healthz", options.seconds, 16))
        report("load refs", run_wrk(f"{tables}/few?snapshots=refs", options.seconds, 16,
                                    headers=[bearer]), 5_000)
        report("load whole", run_wrk(f"{tables}/many", options.seconds, 8, headers=[bearer]), 500)
        tag = catalog.call("GET", "/namespaces/bench/tables/many").headers["ETag"]
        report("load unchanged", run_wrk(f"{tables}/many", options.seconds, 16,
                                         headers=[bearer, f"If-None-Match: {tag}"]), 15_000)
        for count, connections, target in ((64, 32, 800), (1, 8, 150)):
            script = pathlib.Path(folder) / f"commit{count}.lua"
            script.write_text(COMMITS.format(tables=count, token=catalog.token))
            name = "commit one table" if count == 1 else f"commit {count} tables"
            report(name, run_wrk(server.url, options.seconds, connections, script=script), target)


if __name__ == "__main__":
    main()
