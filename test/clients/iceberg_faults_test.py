"""The server dies at each step of a commit: what a client finds, and what trying again does.

Commits are sent as clients send them. After each death the server is started anew: the table is as
before or as asked, never between; the same commit sent again succeeds and has one effect.
"""

import requests
import pytest

from iceberg_server import Iceberg, Server

POINTS = [
    "storage-before-publish", "storage-after-rename", "catalog-before-pointer",
    "catalog-after-pointer", "metastore-before-commit", "metastore-after-commit",
]
PASSES_MAX = 12
SCHEMA = {"type": "struct", "fields": [
    {"id": 1, "name": "id", "required": False, "type": "long"}]}


def append(table, number, parent):
    """A commit that adds snapshot `number` after `parent`."""
    location = table["metadata"]["location"]
    snapshot = {
        "snapshot-id": number, "sequence-number": number,
        "timestamp-ms": 1_900_000_000_000 + number,
        "manifest-list": f"{location}/metadata/snap-{number}.avro",
        "summary": {"operation": "append"}}
    if parent:
        snapshot["parent-snapshot-id"] = parent
    return {
        "requirements": [
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent}],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch",
             "snapshot-id": number}]}


def dies(server, call):
    """Runs `call`; true when the server ended meanwhile."""
    try:
        call()
        return False
    except requests.exceptions.ConnectionError:
        server.process.wait(timeout=30)
        return True


def start(server, environment):
    """Starts the server; false when it dies while it starts."""
    try:
        server.start(environment)
        return True
    except RuntimeError:
        return False


def snapshots(catalog, name):
    metadata = catalog.rest("GET", f"/namespaces/a/tables/{name}").json()["metadata"]
    return [snapshot["snapshot-id"] for snapshot in metadata["snapshots"]]


@pytest.mark.parametrize("point", POINTS)
def test_commit(tmp_path, point):
    server = Server(tmp_path / "home")
    with server:
        catalog = Iceberg(server)
        assert catalog.rest("POST", "/namespaces", json={"namespace": ["a"]}).ok
        table = catalog.rest(
            "POST", "/namespaces/a/tables", json={"name": "t", "schema": SCHEMA}).json()
    done = []
    deaths = 0
    for passes in range(1, PASSES_MAX + 1):
        number = len(done) + 1
        commit = append(table, number, done[-1] if done else None)
        key = f"01920000-0000-7000-8000-{passes:012}"
        died = True
        if start(server, {"TARN_CRASH_POINT": f"{point}:{passes}"}):
            catalog = Iceberg(server)
            died = dies(server, lambda: catalog.rest("POST", "/namespaces/a/tables/t", json=commit))
            server.kill()
        deaths += died
        with server:
            catalog = Iceberg(server)
            assert snapshots(catalog, "t") in (done, done + [number])
            again = catalog.rest("POST", "/namespaces/a/tables/t", json=commit)
            assert again.status_code == 200, again.text
            assert snapshots(catalog, "t") == done + [number]
            with_key = catalog.rest("POST", "/namespaces/a/tables/t", json=commit,
                                    headers={"Idempotency-Key": key})
            assert with_key.status_code == 200, with_key.text
        done.append(number)
        if not died:
            break
    assert deaths > 0, f"{point} was never passed"


@pytest.mark.parametrize("point", ["catalog-before-pointer", "catalog-after-pointer"])
def test_commit_over_two_tables(tmp_path, point):
    server = Server(tmp_path / "home")
    with server:
        catalog = Iceberg(server)
        catalog.rest("POST", "/namespaces", json={"namespace": ["a"]})
        tables = [catalog.rest("POST", "/namespaces/a/tables",
                               json={"name": name, "schema": SCHEMA}).json() for name in "tu"]
    changes = [{"identifier": {"namespace": ["a"], "name": name}, **append(table, 1, None)}
               for name, table in zip("tu", tables)]
    server.start({"TARN_CRASH_POINT": f"{point}:1"})
    catalog = Iceberg(server)
    assert dies(server, lambda: catalog.rest(
        "POST", "/transactions/commit", json={"table-changes": changes}))
    with server:
        catalog = Iceberg(server)
        found = [snapshots(catalog, name) for name in "tu"]
        assert found in ([[], []], [[1], [1]]), "both or neither"
        again = catalog.rest("POST", "/transactions/commit", json={"table-changes": changes})
        assert again.status_code == 204, again.text
        assert [snapshots(catalog, name) for name in "tu"] == [[1], [1]]
