"""Branches, merges, tags, increments and retention of datasets on the command line."""

import json
import signal
import subprocess
import urllib.error
import urllib.request

import pytest
from server import CommandFailed, binary, wait_for


def run(server, *arguments):
    return json.loads(server.run("--json", "dataset", *arguments))


def put(server, tmp_path, name, text, *options):
    file = tmp_path / name
    file.write_text(text)
    return run(server, "put", "default/d", str(file), *options)["transaction"]


def test_branches_merge_and_are_told_apart(server, tmp_path):
    server.run("dataset", "create", "default/d")
    first = put(server, tmp_path, "a", "1")
    branch = run(server, "branch", "create", "default/d", "dev", "--from", "master")
    assert branch["parent"] == "master"
    put(server, tmp_path, "b", "1", "--branch", "dev")
    put(server, tmp_path, "c", "1")
    difference = run(server, "diff", "default/d", "master", "dev")
    assert [file["path"] for file in difference["added"]] == ["b"]
    assert [file["path"] for file in difference["removed"]] == ["c"]
    merged = run(server, "branch", "merge", "default/d", "master", "dev")
    assert merged["outcome"] == "merged"
    assert [file["path"] for file in run(server, "ls", "default/d")] == ["a", "b", "c"]
    increment = run(server, "increment", "default/d", "--since", first["rid"])
    assert increment["incremental"]
    assert sorted(file["path"] for file in increment["added"]) == ["b", "c"]
    graph = server.run("dataset", "log", "default/d", "--graph")
    assert graph.count("*") == 4 and "|" in graph
    assert "(master)" in graph


def test_a_protected_branch_and_a_tag(server, tmp_path):
    server.run("dataset", "create", "default/d")
    first = put(server, tmp_path, "a", "1")
    put(server, tmp_path, "a", "2")
    run(server, "tag", "create", "default/d", "v1", first["rid"])
    assert run(server, "tag", "list", "default/d")[0]["transactionRid"] == first["rid"]
    run(server, "branch", "protect", "default/d", "master")
    with pytest.raises(CommandFailed) as refused:
        run(server, "branch", "reset", "default/d", "master", first["rid"])
    assert refused.value.code == 4
    run(server, "branch", "protect", "default/d", "master", "--off")
    run(server, "branch", "reset", "default/d", "master", first["rid"])


def test_a_tag_is_read_wherever_a_branch_or_a_transaction_is(server, tmp_path):
    server.run("dataset", "create", "default/d")
    first = put(server, tmp_path, "a.csv", "id\n1\n", "--as", "x.csv")
    run(server, "tag", "create", "default/d", "v1", first["rid"])
    put(server, tmp_path, "b.csv", "id\n2\n", "--as", "x.csv")
    for option in ("--branch", "--at"):
        assert run(server, "ls", "default/d", option, "v1")[0]["sizeBytes"] == "5"
        out = tmp_path / option
        run(server, "get", "default/d", option, "v1", "--to", str(out))
        assert (out / "x.csv").read_text() == "id\n1\n"
    assert len(run(server, "diff", "default/d", "v1", "master")["changed"]) == 1
    for option in ("--branch", "--at"):
        with pytest.raises(CommandFailed) as unknown:
            run(server, "ls", "default/d", option, "v2")
        assert unknown.value.code == 3 and "v2" in unknown.value.errors
    with pytest.raises(CommandFailed) as kept:
        run(server, "branch", "delete", "default/d", "master")
    assert kept.value.code == 4 and "default branch" in kept.value.errors


def test_rows_are_written_alike_with_and_without_a_point(server, tmp_path):
    server.run("sql", "CREATE SCHEMA s")
    server.run("sql", "CREATE TABLE s.t AS SELECT range AS id, 'a' AS t FROM range(3)")
    snapshot = str(server.json("table", "snapshots", "s.t")[0]["snapshotId"])
    commands = [("sql", "SELECT * FROM s.t ORDER BY id", "--format", form)
                for form in ("csv", "table", "json", "arrow")]
    for command in commands:
        plain = server.bytes(*command)
        assert plain and plain == server.bytes(*command, "--at", snapshot), command


def test_uploads_to_one_branch_take_turns(server, tmp_path):
    server.run("dataset", "create", "default/d")
    (tmp_path / "f").write_text("x")
    puts = [subprocess.Popen(
        [binary(), "dataset", "put", "default/d", str(tmp_path / "f"), "--as", f"f{i}",
         "--url", server.url, "--home", str(server.home)], stdout=subprocess.DEVNULL)
            for i in range(8)]
    assert [one.wait(timeout=60) for one in puts] == [0] * 8
    assert len(run(server, "ls", "default/d")) == 8
    held = run(server, "transaction", "start", "default/d")["rid"]
    with pytest.raises(CommandFailed) as waiting:
        server.run("dataset", "put", "default/d", str(tmp_path / "f"), "--wait", "1")
    assert waiting.value.code == 4
    assert f"is held by transaction {held} of admin, open since" in waiting.value.errors
    run(server, "transaction", "abort", "default/d", held)
    server.run("dataset", "put", "default/d", str(tmp_path / "f"), "--wait", "1")


def test_folders_and_tables_are_made_and_dropped(server):
    server.run("folder", "create", "default/own")
    with pytest.raises(CommandFailed) as again:
        server.run("folder", "create", "default/own")
    assert again.value.code == 4
    server.run("sql", "CREATE TABLE own.t AS SELECT 1 AS id")
    assert [one["displayName"] for one in server.json("folder", "list", "default/own")] == ["t"]
    with pytest.raises(CommandFailed) as full:
        server.run("folder", "delete", "default/own")
    assert full.value.code == 4 and "t" in full.value.errors
    server.run("table", "drop", "own.t")
    with pytest.raises(CommandFailed) as gone:
        server.sql("SELECT * FROM own.t")
    assert gone.value.code == 3
    server.run("folder", "delete", "default/own")
    with pytest.raises(CommandFailed) as missing:
        server.run("folder", "delete", "default/own")
    assert missing.value.code == 3


def test_retention_marks_and_explains(server, tmp_path):
    server.run("dataset", "create", "default/d")
    first = put(server, tmp_path, "a", "1")
    put(server, tmp_path, "a", "2")
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"datasets": {"all": True}, "transactions": {"keepNewest": 1}}))
    run(server, "retention", "put", str(policy), "--name", "newest")
    assert run(server, "retention", "run", "--dry-run")["marked"] == 1
    assert run(server, "retention", "run")["marked"] == 1
    explained = run(server, "retention", "explain", "default/d", "a", "--at", first["rid"])
    assert explained["fate"] == "marked"
    assert [p["name"] for p in run(server, "retention", "list", "default/d")] == ["newest"]
    run(server, "retention", "unmark", "default/d", first["rid"])
    assert run(server, "sweep", "--dry-run")["removed"] == 0
    run(server, "retention", "delete", "newest")


def infer(server, dataset="default/d", body=None):
    rid = server.json("dataset", "show", dataset)["rid"]
    request = urllib.request.Request(
        f"{server.url}/tarn/v1/datasets/{rid}:inferSchema", method="POST",
        data=json.dumps(body or {}).encode(),
        headers={"Authorization": f"Bearer {server.token()}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return rid, json.load(answer)


def put_schema(server, rid, schema):
    request = urllib.request.Request(
        f"{server.url}/api/v2/datasets/{rid}/putSchema?preview=true", method="PUT",
        data=json.dumps({"schema": schema}).encode(),
        headers={"Authorization": f"Bearer {server.token()}", "Content-Type": "application/json"})
    urllib.request.urlopen(request).close()


def types_of(inferred):
    return {field["name"]: field["type"] for field in inferred["schema"]["fieldSchemaList"]}


def test_a_schema_is_inferred_from_text_and_reads_it(server, tmp_path):
    server.run("dataset", "create", "default/d")
    put(server, tmp_path, "a.csv", "id;zip;price;ok;day;at;note\n"
        "1;00123;1.5;true;2026-01-02;2026-01-02 03:04:05;\"a;b\"\n"
        "-2;99999;3;FALSE;2026-01-03;2026-01-02T03:04:05Z;\n")
    put(server, tmp_path, "b.csv", "id;zip;price;ok;day;at;note\n"
        "12345678901234567890;1;0.1;;;;x\n")
    put(server, tmp_path, "c.csv", "other;columns\n1;2\n")
    put(server, tmp_path, "d.json", "{\"id\": 1}\n")
    put(server, tmp_path, "_hidden", "{")
    rid, inferred = infer(server)
    assert inferred["format"] == "CSV"
    assert types_of(inferred) == {
        "id": "STRING", "zip": "STRING", "price": "DOUBLE", "ok": "BOOLEAN", "day": "DATE",
        "at": "TIMESTAMP", "note": "STRING"}
    files = {file["path"]: file for file in inferred["files"]}
    assert sorted(files) == ["a.csv", "b.csv", "c.csv", "d.json"]
    assert files["a.csv"]["problem"] is None and files["a.csv"]["rows"] == 2
    assert "other, columns" in files["c.csv"]["problem"]
    assert "JSON" in files["d.json"]["problem"]
    _, sampled = infer(server, body={"sample": {"files": 1, "rowsPerFile": 1}})
    assert types_of(sampled)["id"] == "LONG" and len(sampled["files"]) == 1
    for name in ("c.csv", "d.json"):
        server.run("dataset", "rm", "default/d", name)
    put_schema(server, rid, inferred["schema"])
    rows = run(server, "read", "default/d")
    assert rows[0]["zip"] == "00123" and rows[0]["note"] == "a;b" and rows[0]["day"] == "2026-01-02"
    assert rows[2]["id"] == "12345678901234567890" and rows[2]["ok"] is None


def test_inference_calls_files_what_the_dataset_calls_them(server, tmp_path):
    for name, text in (("a.csv", "id;x\n1;\"open\n2;3\n"), ("a.parquet", "PAR1 nothing of it")):
        dataset = f"default/{name[2:]}"
        (tmp_path / name).write_text(text)
        run(server, "create", dataset)
        run(server, "put", dataset, str(tmp_path / name))
        try:
            _, inferred = infer(server, dataset)
            told = inferred["files"][0]["problem"]
        except urllib.error.HTTPError as failure:
            told = failure.read().decode()
        assert told and name in told and "warehouse" not in told, told


def test_a_schema_is_inferred_from_json_and_reads_it(server, tmp_path):
    server.run("dataset", "create", "default/d")
    put(server, tmp_path, "a.jsonl", '{"id": 1, "s": {"x": [1, 2]}}\n{"id": 2, "n": 0.5}\n')
    put(server, tmp_path, "b.json", '[{"id": 12345678901234567890, "s": {"y": "t"}}, 5]')
    rid, inferred = infer(server)
    assert inferred["format"] == "JSON"
    assert types_of(inferred) == {"id": "DECIMAL", "s": "STRUCT", "n": "DOUBLE"}
    problems = [file["problem"] for file in inferred["files"]]
    assert problems[0] is None and "1 records" in problems[1]
    put(server, tmp_path, "b.json", '[{"id": 12345678901234567890, "s": {"y": "t"}}]',
        "--type", "UPDATE")
    put_schema(server, rid, inferred["schema"])
    text = server.run("--json", "dataset", "read", "default/d")
    assert "12345678901234567890" in text
    rows = json.loads(text)
    assert rows[0]["s"] == {"x": [1, 2], "y": None} and rows[1]["n"] == 0.5
    assert rows[2]["s"] == {"x": None, "y": "t"}
    put(server, tmp_path, "c.json", '{"id": "no number"}')
    with pytest.raises(CommandFailed) as failure:
        run(server, "read", "default/d")
    assert failure.value.code == 1 and "JSON" in failure.value.errors


def test_what_cannot_be_inferred_is_said(server, tmp_path):
    server.run("dataset", "create", "default/d")
    with pytest.raises(urllib.error.HTTPError) as failure:
        infer(server)
    assert failure.value.code == 412
    (tmp_path / "x.bin").write_bytes(b"\x00\x01\x02")
    server.run("dataset", "put", "default/d", str(tmp_path / "x.bin"))
    with pytest.raises(urllib.error.HTTPError) as failure:
        infer(server)
    assert "x.bin" in failure.value.read().decode()
    with pytest.raises(urllib.error.HTTPError) as failure:
        infer(server, body={"sample": {"files": 0}})
    assert failure.value.code == 400


def test_an_interrupted_upload_leaves_the_branch_free(server, tmp_path):
    server.run("dataset", "create", "default/d")
    upload = subprocess.Popen(
        [binary(), "dataset", "put", "default/d", "-", "--as", "x", "--url", server.url,
         "--home", str(server.home)], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    upload.stdin.write(b"some bytes, and more to come")
    upload.stdin.flush()
    wait_for(lambda: [one for one in run(server, "log", "default/d") if one["status"] == "OPEN"])
    upload.send_signal(signal.SIGINT)
    assert upload.wait(timeout=60) != 0 and b"interrupted" in upload.stderr.read()
    assert not run(server, "log", "default/d")
    put(server, tmp_path, "y", "1")
    assert [file["path"] for file in run(server, "ls", "default/d")] == ["y"]
