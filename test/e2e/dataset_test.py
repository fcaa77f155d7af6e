"""Branches, merges, tags, increments and retention of datasets on the command line."""

import json

import pytest
from server import CommandFailed


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
