"""What queries may take of a server, and what they leave behind."""

import json
import os
import socket
import time
import urllib.parse

import pytest

from server import CommandFailed, Server, tasks_of, wait_for

# Nothing of it can be answered from statistics, and it never ends.
ENDLESS = ("SELECT count(*) AS n FROM range(100000000) AS a, range(1000000) AS b "
           "WHERE hash(a.range + b.range) = 1")


def processor_seconds(server):
    fields = open(f"/proc/{server.process.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_idle(server):
    before = processor_seconds(server)
    time.sleep(0.5)
    return processor_seconds(server) - before < 0.1


def test_values_that_are_too_large_fail_and_the_server_stays(tmp_path):
    small = {"TARN_MEMORY": "64MiB", "TARN_ENGINE_MEMORY": "64MiB"}
    with Server(tmp_path / "home", small) as server:
        for query in ("SELECT repeat('x', 1200000000)",
                      "SELECT repeat('x', 2000000) FROM range(1000)"):
            with pytest.raises(CommandFailed) as failure:
                server.run("sql", query, "--format", "csv")
            assert failure.value.code == 5 and "engine_memory" in failure.value.errors
            assert "SET " not in failure.value.errors
            assert server.process.poll() is None
        assert server.sql("SELECT 1 AS one") == [{"one": 1}]


def test_a_change_is_known_behind_comments(server):
    server.run("sql", "-- a folder\nCREATE SCHEMA s")
    server.run("sql", "/* a table */ -- of one row\n CREATE TABLE s.t AS SELECT 1 AS n")
    server.run("sql", "  -- DELETE is not the first word\nUPDATE s.t SET n = n IS DISTINCT FROM 1")
    assert server.sql("-- DELETE FROM s.t\nSELECT n FROM s.t") == [{"n": 0}]
    server.run("sql", "/**/DELETE FROM s.t")
    assert server.sql("SELECT n FROM s.t") == []


@pytest.mark.parametrize("route, query", [
    ("sql", ENDLESS), ("sql:change", "INSERT INTO s.t " + ENDLESS),
    ("sql:change", "CREATE TABLE s.other AS " + ENDLESS)])
def test_a_query_ends_when_its_client_leaves(server, route, query):
    server.run("sql", "CREATE SCHEMA s")
    server.run("sql", "CREATE TABLE s.t AS SELECT 1 AS n")
    address = urllib.parse.urlsplit(server.url)
    body = json.dumps({"query": query})
    with socket.create_connection((address.hostname, address.port)) as client:
        client.sendall((f"POST /tarn/v1/{route} HTTP/1.1\r\nHost: x\r\n"
                        f"Authorization: Bearer {server.token()}\r\n"
                        f"Content-Type: application/json\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
        wait_for(lambda: not is_idle(server))
    wait_for(lambda: is_idle(server), seconds=10)
    assert server.sql("SELECT n FROM s.t") == [{"n": 1}]
    assert server.json("table", "list")[0]["name"].endswith("s.t")
    assert len(server.json("table", "list")) == 1


def test_a_query_that_fails_after_its_first_rows_says_why(server):
    query = ("SELECT CAST(CASE WHEN range > 3000000 THEN 'none' ELSE '1' END AS INT) AS n "
             "FROM range(4000000)")
    for form in ("csv", "json", "table"):
        with pytest.raises(CommandFailed) as failure:
            server.run("sql", query, "--format", form)
        assert failure.value.code == 1 and "'none'" in failure.value.errors, form


def test_a_file_with_a_name_of_other_bytes_is_a_warning(server, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "good.jsonl").write_text('{"id": 1}\n')
    with open(os.fsencode(folder) + b"/bad\xff.jsonl", "w") as file:
        file.write('{"id": 2}\n')
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text(f"""\
pipeline: p
sources:
  in: {{type: files, uri: "{folder.as_uri()}"}}
landing:
  events: {{source: in, paths: ["*.jsonl"]}}
""")
    server.run("run", str(pipeline), "--once")
    task = tasks_of(server)["p.events"]
    assert task["rows_out"] == 1 and task["counts"]["bad_names"] == 1
    assert [(one["code"], one["object"]) for one in task["warnings"]] == [
        ("bad_name", f"{folder}/bad\\xFF.jsonl")]
    assert "bad_name" in server.run("status")


def test_a_server_says_that_sources_may_read_everything(tmp_path):
    with Server(tmp_path / "open") as server:
        assert "sources.allow_paths is not set" in server.log_text()
    with Server(tmp_path / "closed", {"TARN_SOURCES_ALLOW_PATHS": "/data/in"}) as server:
        assert "sources.allow_paths" not in server.log_text()
