"""Operating pipelines: status, single tasks, plans, variables, stopping, privacy."""

import json
import os
import re
import signal
import stat
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from server import (CommandFailed, Server, binary, follow, metrics_of, tasks_of, wait_for)

PIPELINE = """\
pipeline: p
sources:
  in: {{type: files, uri: "{uri}"}}
landing:
  events:
    source: in
    paths: ["*.jsonl"]
    poll: 200ms
    commit: {{interval: 200ms}}
transform:
  orders:
    from: events
    key: [id]
"""


def write_lines(path, records):
    part = path.with_suffix(".part")
    part.write_text("".join(json.dumps(record) + "\n" for record in records))
    part.rename(path)


def plan_of(server, file):
    """The lines of a plan by object. With a refusal it ends as a conflict does."""
    done = subprocess.run(
        [binary(), "pipeline", "plan", str(file), "--json", "--url", server.url,
         "--home", str(server.home)], capture_output=True, text=True)
    lines = json.loads(done.stdout)
    assert done.returncode == (4 if any(line["refused"] for line in lines) else 0), done.stderr
    return {line["object"]: line for line in lines}


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE.format(uri=folder.as_uri()))
    return folder, file


def test_status_and_metrics_after_a_run(server, place):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": 1}, {"id": 2}, {"id": 1}])
    (folder / "2.jsonl").write_text('{"id": 3}\n{"id": \n')
    os.utime(folder / "1.jsonl", (1_700_000_000, 1_700_000_000))
    os.utime(folder / "2.jsonl", (1_700_000_100, 1_700_000_100))
    shown = server.run("run", str(file), "--once")
    assert "{" not in shown and "p.orders" in shown and "rows_out" in shown
    tasks = tasks_of(server)
    landing, transform = tasks["p.events"], tasks["p.orders"]
    assert (landing["state"], transform["state"]) == ("STOPPED", "STOPPED")
    assert (landing["rows_in"], landing["rows_out"], landing["rejected"]) == (5, 4, 1)
    assert (transform["rows_in"], transform["rows_out"], transform["unapplied"]) == (4, 4, 0)
    for task in (landing, transform):
        assert task["lag_rows"] == 0 and task["lag_seconds"] == 0 and task["last_error"] is None
        assert task["data_updated_to"].startswith("2023-11-14T22:15:00")
        assert task["last_commit"] is not None
    assert transform["last_apply"] is not None and transform["counts"]["applies"] == 1
    text = metrics_of(server)
    labels = 'pipeline="p",task="orders",kind="transform"'
    assert f"tarn_task_rows_out_total{{{labels}}} 4\n" in text
    assert f"tarn_task_applies_total{{{labels}}} 1\n" in text
    assert f'tarn_task_state{{{labels},state="STOPPED"}} 1\n' in text
    assert re.search(r"tarn_task_rows_rejected_total\{[^}]*events[^}]*\} 1\n", text)
    assert re.search(r"tarn_task_last_commit_timestamp_seconds\{[^}]*\} 1[0-9.]{9,}\n", text)
    assert text.count("# TYPE tarn_task_lag_seconds gauge\n") == 1


def test_truncates_are_counted_in_append_mode_too(server, place):
    folder, file = place
    source = {"schema": "s", "table": "t", "ts_ms": 1}
    write_lines(folder / "1.jsonl", [
        {"op": "c", "after": {"id": 1}, "source": {**source, "lsn": 1}},
        {"op": "t", "before": None, "after": None, "source": {**source, "lsn": 2}}])
    file.write_text(file.read_text()
                    .replace("poll: 200ms", "content: {type: json, envelope: debezium}")
                    .replace("key: [id]", "mode: append"))
    server.run("run", str(file), "--once")
    transform = tasks_of(server)["p.orders"]
    assert (transform["rows_in"], transform["rows_out"]) == (2, 1)
    assert transform["counts"]["truncates"] == 1


def test_an_overwritten_file_is_a_warning(server, place):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": 1}])
    server.run("run", str(file), "--once")
    write_lines(folder / "1.jsonl", [{"id": 1}, {"id": 2}])
    server.run("run", str(file), "--once")
    warnings = tasks_of(server)["p.events"]["warnings"]
    assert [(warning["code"], warning["object"].endswith("/1.jsonl")) for warning in warnings] == [
        ("overwritten", True)]
    assert "overwritten" in server.run("status")


def test_one_task_stops_alone_and_lags(server, place):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": 1}])
    running = follow(server, file)
    try:
        wait_for(lambda: tasks_of(server).get("p.orders", {}).get("rows_out") == 1)
        assert server.json("task", "stop", "p.orders")["state"] == "STOPPED"
        write_lines(folder / "2.jsonl", [{"id": n} for n in range(2, 7)])
        tasks = wait_for(lambda: (now := tasks_of(server))["p.orders"]["lag_rows"] == 5 and now)
        assert tasks["p.events"]["state"] == "RUNNING" and tasks["p.events"]["lag_rows"] == 0
        assert wait_for(lambda: tasks_of(server)["p.orders"]["lag_seconds"] > 0)
        assert tasks["p.orders"]["lag_bytes"] > 100 and tasks["p.events"]["lag_bytes"] == 0
        assert re.search(r'tarn_task_lag_bytes{[^}]*task="orders"[^}]*} [1-9]', metrics_of(server))
        assert running.poll() is None
        server.stop()
        server.start()  # What was stopped stays so.
        wait_for(lambda: tasks_of(server)["p.events"]["state"] == "RUNNING")
        assert tasks_of(server)["p.orders"]["state"] == "STOPPED"
        server.run("task", "start", "p.orders")
        tasks = wait_for(lambda: (now := tasks_of(server))["p.orders"]["lag_rows"] == 0 and now)
        assert tasks["p.orders"]["lag_seconds"] == 0
        with pytest.raises(CommandFailed) as failure:
            server.run("task", "stop", "p.nothing")
        assert failure.value.code == 3
    finally:
        running.kill()
        running.communicate()


def test_a_source_that_goes_away_comes_back(server, place):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": 1}])
    running = follow(server, file)
    try:
        wait_for(lambda: tasks_of(server).get("p.orders", {}).get("rows_out") == 1)
        away = folder.with_name("away")
        folder.rename(away)
        task = wait_for(lambda: (now := tasks_of(server)["p.events"])["last_error"] and now)
        assert str(folder) in task["last_error"] and task["state"] == "RUNNING"
        time.sleep(1)  # Attempts to open it fail, too.
        assert tasks_of(server)["p.events"]["state"] == "RUNNING"
        away.rename(folder)
        write_lines(folder / "2.jsonl", [{"id": 2}])
        wait_for(lambda: tasks_of(server)["p.orders"]["rows_out"] == 2)
        assert tasks_of(server)["p.events"]["last_error"] is None
        assert running.poll() is None
    finally:
        running.kill()
        errors = running.communicate()[1]
    assert "p.events: " in errors and str(folder) in errors


def test_an_old_error_does_not_end_a_later_run(server, place):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": 1}])
    good = file.read_text()
    file.write_text(good.replace("key: [id]", "key: [nothing]"))
    failed = follow(server, file)
    output, errors = failed.communicate(timeout=60)
    assert failed.returncode == 1 and errors.splitlines()[-1].startswith("tarn: p.orders: "), errors
    assert tasks_of(server)["p.orders"]["state"] == "ERROR"
    file.write_text(good)
    running = follow(server, file)
    try:
        wait_for(lambda: tasks_of(server)["p.orders"]["rows_out"] == 1)
        time.sleep(1)
        assert running.poll() is None
    finally:
        running.kill()
        running.communicate()


def test_the_task_to_blame_is_named(server, place):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": 1}])
    file.write_text(file.read_text().replace("key: [id]", "key: [nothing]"))
    with pytest.raises(CommandFailed) as failure:
        server.run("run", str(file), "--once", "--json")
    assert failure.value.code == 1
    assert json.loads(failure.value.errors)["error"]["message"].startswith("p.orders: ")


def test_recreate_of_a_table_that_was_never_made(server, place):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": 1}])
    good = file.read_text()
    file.write_text(good + "    delete_when: \"missing = 'x'\"\n")
    with pytest.raises(CommandFailed):
        server.run("run", str(file), "--once")
    file.write_text(good)
    server.run("pipeline", "apply", str(file))
    server.run("task", "recreate", "p.orders")
    server.run("run", str(file), "--once")
    assert server.sql("SELECT id FROM orders.orders") == [{"id": 1}]


def test_recreate_evaluates_everything_again(server, place):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": 1, "n": 5}, {"id": 2, "n": 6}])
    server.run("run", str(file), "--once")
    first = server.sql("SELECT id, n FROM orders.orders ORDER BY id")
    file.write_text(file.read_text().replace("key: [id]", "key: [n]"))
    plan = plan_of(server, file)
    assert plan["p.orders"]["refused"] and "recreate p.orders" in plan["p.orders"]["effect"]
    with pytest.raises(CommandFailed):
        server.run("run", str(file), "--once")
    server.run("task", "recreate", "p.orders")
    server.run("run", str(file), "--once")
    assert server.sql("SELECT id, n FROM orders.orders ORDER BY id") == first
    assert tasks_of(server)["p.orders"]["rows_in"] == 2
    for task, code in (("p.events", 1), ("p.nothing", 3)):
        with pytest.raises(CommandFailed) as failure:
            server.run("task", "recreate", task)
        assert failure.value.code == code


def test_plans_foresee_refusals(server, place, tmp_path):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": 1}])
    plan = plan_of(server, file)
    assert {line["change"] for line in plan.values()} == {"create"}
    assert "orders_internal.orders_internal" in plan["p.orders"]["effect"]
    server.run("run", str(file), "--once")
    plan = plan_of(server, file)
    assert {line["change"] for line in plan.values()} == {"keep"}
    text = file.read_text()

    def planned(changed):
        file.write_text(changed)
        return plan_of(server, file)

    line = planned(text.replace("key: [id]", 'key: [id]\n    where: "id > 1"'))["p.orders"]
    assert line["change"] == "change" and "future rows" in line["effect"] and not line["refused"]
    line = planned(text.replace("key: [id]", 'key: [id]\n    where: "nothing > 1"'))["p.orders"]
    assert line["refused"] and "nothing" in line["effect"]
    other = tmp_path / "other"
    other.mkdir()
    line = planned(text.replace(folder.as_uri(), other.as_uri()))["p.events"]
    assert line["refused"] and "another source" in line["effect"]
    with pytest.raises(CommandFailed) as failure:
        server.run("pipeline", "apply", str(file))
    assert "another source" in failure.value.errors
    plan = planned(text.replace("pipeline: p", "pipeline: q"))
    assert plan["q"]["refused"] and "p: landing.events" in plan["q"]["effect"]
    with pytest.raises(CommandFailed) as failure:
        server.run("pipeline", "apply", str(file))
    assert failure.value.code == 4
    assert planned(text.replace("  orders:", "  orders2:"))["p.orders"]["change"] == "remove"


def test_variables_come_from_the_command_and_are_never_shown(server, place, monkeypatch):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": 1}])
    text = PIPELINE.format(uri="file://${TEST_FOLDER}")
    file.write_text(text)
    monkeypatch.delenv("TEST_FOLDER", raising=False)
    with pytest.raises(CommandFailed) as failure:
        server.run("pipeline", "validate", str(file))
    assert "line 3" in failure.value.errors and "${TEST_FOLDER}" in failure.value.errors
    monkeypatch.setenv("TEST_FOLDER", str(folder))
    server.run("run", str(file), "--once")
    assert server.sql("SELECT id FROM orders.orders") == [{"id": 1}]
    assert server.run("pipeline", "export", "p") == text
    assert server.json("pipeline", "export", "p") == {"name": "p", "yaml": text}
    monkeypatch.setenv("TEST_FOLDER", "/nowhere/secret-place")
    with pytest.raises(CommandFailed) as failure:
        server.run("landing", "preview", str(file))
    assert "secret-place" not in failure.value.errors
    server.stop()
    assert "secret-place" not in server.log_text()


def test_the_server_expands_what_it_allows(tmp_path, place):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": 1}])
    text = PIPELINE.format(uri="file://${SERVER_FOLDER}")
    file.write_text(text)
    with Server(tmp_path / "home", {"SERVER_FOLDER": str(folder)}) as server:
        with pytest.raises(CommandFailed):
            server.run("pipeline", "validate", str(file))
    with Server(tmp_path / "home", {"SERVER_FOLDER": str(folder),
                                    "TARN_SECRETS_ALLOW": "SERVER_FOLDER"}) as server:
        server.run("run", str(file), "--once")
        assert server.sql("SELECT id FROM orders.orders") == [{"id": 1}]


def test_previews_and_samples(server, place):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": 1, "big": 12345678901234567890123}, {"id": 2}])
    (folder / "x.csv").write_text("a")
    preview = server.json("landing", "preview", str(file))
    assert [(entry["path"], entry["date"]) for entry in preview["included"]] == [
        ("1.jsonl", None)]
    assert preview["included"][0]["size"] == (folder / "1.jsonl").stat().st_size
    assert preview["excluded"][0]["path"] == "x.csv" and preview["excluded"][0]["reason"]
    sample = server.run("landing", "sample", str(file), "events", "--rows", "1", "--json")
    assert "12345678901234567890123" in sample and len(json.loads(sample)) == 1
    assert "big" in server.run("landing", "sample", str(file))
    server.run("run", str(file), "--once")
    assert server.json("landing", "preview", str(file))["included"] == []
    assert len(json.loads(server.run("landing", "sample", str(file), "--json"))) == 2
    with pytest.raises(CommandFailed) as failure:
        server.run("landing", "preview", str(file), "nothing")
    assert failure.value.code == 3


def test_the_schema_needs_no_server():
    done = subprocess.run([binary(), "pipeline", "schema"], capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout)["title"]


def test_sigterm_ends_a_run_at_its_next_commit(tmp_path, place):
    folder, file = place
    file.write_text(file.read_text().replace("interval: 200ms", "rows: 1000, interval: 200ms"))
    for number in range(400):
        write_lines(folder / f"{number:04}.jsonl", [{"id": n} for n in range(2000)])
    server = Server(tmp_path / "home").start()
    running = subprocess.Popen(
        [binary(), "run", str(file), "--once", "--url", server.url, "--home", str(server.home)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: tasks_of(server).get("p.events", {}).get("rows_out", 0) > 0)
        started = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=30) == 0
        assert time.monotonic() - started < 15
        running.communicate(timeout=60)
        assert running.returncode == 5
    finally:
        running.kill()
        server.kill()
    with server:
        server.run("run", str(file), "--once")
        assert server.sql("SELECT count(*) AS c FROM landing.events") == [{"c": 800_000}]
        assert server.sql("SELECT count(*) AS c FROM orders.orders") == [{"c": 2000}]


def test_a_home_is_private(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    with Server(home):
        def mode(path):
            return stat.S_IMODE(path.stat().st_mode)

        assert mode(home) == 0o700
        for name in ("metastore.db", "admin-token", "tarn.toml"):
            assert mode(home / name) == 0o600, name
        for journal in home.glob("metastore.db-*"):
            assert mode(journal) == 0o600, journal


def serve(home, *arguments, environment=None):
    return subprocess.run(
        [binary(), "serve", "--home", str(home), *arguments], capture_output=True, text=True,
        timeout=60, env={**os.environ, **(environment or {})})


def test_anonymous_needs_no_token_and_only_loopback(tmp_path):
    refused = serve(tmp_path / "a", "--listen", "0.0.0.0:0", "--insecure-anonymous")
    assert refused.returncode == 1 and "loopback" in refused.stderr
    process = subprocess.Popen(
        [binary(), "serve", "--home", str(tmp_path / "b"), "--listen", "127.0.0.1:0",
         "--insecure-anonymous"], stdout=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().removeprefix("listening on ").strip()
        for headers in ({}, {"Authorization": "Bearer anything"}):
            request = urllib.request.Request(url + "/tarn/v1/users", headers=headers)
            with urllib.request.urlopen(request) as answer:
                assert answer.status == 200
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def test_a_token_is_needed_otherwise(server):
    with pytest.raises(urllib.error.HTTPError) as failure:
        urllib.request.urlopen(server.url + "/tarn/v1/users")
    assert failure.value.code == 401


@pytest.mark.parametrize("line, complaint", [
    ('tls_certificate = "x"', "tls_certificate is not available"),
    ("[tls]", "tls is not available"),
    ("[retention]", "retention is not available"),
    ('metastore = "postgresql://me:hush@host/db"', "a password does not belong"),
    ("wrong = 1", "unknown key wrong"),
    ('[secrets]\nallow = "X"', "secrets has only allow"),
])
def test_configuration_names_what_it_refuses(tmp_path, line, complaint):
    home = tmp_path / "home"
    home.mkdir()
    (home / "tarn.toml").write_text(line + "\n")
    refused = serve(home, "--listen", "127.0.0.1:0")
    assert refused.returncode == 1 and complaint in refused.stderr, refused.stderr
    assert "hush" not in refused.stderr


def test_unknown_variables_are_refused_by_name(tmp_path):
    home = tmp_path / "home"
    refused = serve(home, "--listen", "127.0.0.1:0", environment={"TARN_LISTN": "x-secret"})
    assert refused.returncode == 1 and "TARN_LISTN" in refused.stderr, refused.stderr
    assert "x-secret" not in refused.stderr
    with Server(home, {"TARN_SECRETS_ALLOW": "TARN_LISTN", "TARN_LISTN": "x"}):
        pass  # A pipeline's own variable may be called so when it is allowed.


def test_allowed_paths_hold_behind_symbolic_links(tmp_path, place):
    folder, file = place
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "link").symlink_to(folder)
    home = tmp_path / "home"
    with Server(home, {"TARN_SOURCES_ALLOW_PATHS": str(allowed)}) as server:
        file.write_text(PIPELINE.format(uri=(allowed / "link").as_uri()))
        with pytest.raises(CommandFailed) as failure:
            server.run("pipeline", "validate", str(file))
        assert failure.value.code == 6 and "allow_paths" in failure.value.errors
        (allowed / "in").mkdir()
        file.write_text(PIPELINE.format(uri=(allowed / "in").as_uri()))
        server.run("pipeline", "validate", str(file))


def test_projects_are_listed(server):
    assert [project["name"] for project in server.json("project", "list")] == ["default"]


def test_the_files_of_the_server_are_no_source(server, place):
    folder, file = place
    own = server.home / "inside"
    own.mkdir()
    (folder / "link").symlink_to(server.home)
    for uri in (server.home, own, server.home / "warehouse", server.home.parent, "/",
                folder / "link"):
        file.write_text(PIPELINE.format(uri=f"file://{uri}"))
        for command in ("validate", "apply"):
            with pytest.raises(CommandFailed) as failure:
                server.run("pipeline", command, str(file))
            assert failure.value.code == 6 and "server's own files" in failure.value.errors


def test_a_preview_shows_rows_as_the_mapping_makes_them(server, place):
    folder, file = place
    write_lines(folder / "1.jsonl", [
        {"id": 1, "big": 12345678901234567890123, "a": {"b": "x"}}, {"id": None}, {"id": 2}])
    text = PIPELINE.format(uri=folder.as_uri()) + """\
    columns:
      twice: "id * 2"
    rename: {a_b: c}
"""
    file.write_text(text)
    server.run("pipeline", "apply", str(file))
    with pytest.raises(CommandFailed) as failure:
        server.run("task", "preview", "p.orders")
    assert "nothing has landed" in failure.value.errors
    with pytest.raises(CommandFailed) as failure:
        server.run("task", "preview", "p.events")
    assert "only transform tasks" in failure.value.errors
    server.run("run", str(file), "--once")
    tasks = tasks_of(server)
    output = server.run("task", "preview", "p.orders", "--json")
    assert "12345678901234567890123" in output
    rows = json.loads(output)
    assert [(row["id"], row["c"], row["twice"]) for row in rows] == [(1, "x", 2), (2, None, 4)]
    assert len(json.loads(server.run("task", "preview", "p.orders", "--limit", "1",
                                     "--json"))) == 1
    assert "twice" in server.run("task", "preview", "p.orders")
    landed = server.run("dataset", "read", "default/landing/events", "--columns", "id,big",
                        "--json")
    assert json.loads(landed) == [{"id": 1, "big": 12345678901234567890123},
                                  {"id": None, "big": None}, {"id": 2, "big": None}]
    assert "12345678901234567890123" in landed
    assert tasks_of(server) == tasks


def test_a_reload_makes_the_table_what_the_file_says(server, place):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 1, "v": "c"}])
    server.run("run", str(file), "--once")
    file.write_text(file.read_text() + "    columns: {v: \"upper(v)\"}\n    where: id < 2\n")
    server.run("pipeline", "apply", str(file))
    query = "SELECT id, v FROM orders.orders ORDER BY id"
    assert server.sql(query) == [{"id": 1, "v": "c"}, {"id": 2, "v": "b"}]
    server.run("task", "reload", "p.orders", "--type", "compare_and_apply_without_deletes")
    assert server.sql(query) == [{"id": 1, "v": "C"}, {"id": 2, "v": "b"}]
    server.run("task", "reload", "p.orders")
    assert server.sql(query) == [{"id": 1, "v": "C"}]
    assert server.sql("SELECT hdr__operation AS o FROM orders_internal.orders_internal "
                      "WHERE hdr__partition = 'Current'") == [{"o": "u"}]
    assert [table["name"] for table in server.json("table", "list")
            if "reload" in table["name"]] == []
    for words, code in ((("task", "reload", "p.orders", "--type", "all"), 1),
                        (("task", "reload", "p.orders", "--from", "x"), 1),
                        (("task", "reload", "p.none"), 3)):
        with pytest.raises(CommandFailed) as failure:
            server.run(*words)
        assert failure.value.code == code, words


def test_dead_letters_land_once_when_the_file_takes_them(server, place):
    folder, file = place
    (folder / "1.jsonl").write_text(
        '{"id": 1, "v": 1}\n{"id": 2, "v": "x"}\n{"id": 3,\n{"id": 4, "v": 4}\n')
    (folder / "2.jsonl").write_text("")
    with_int = file.read_text().replace(
        'paths: ["*.jsonl"]', 'paths: ["*.jsonl"]\n    columns: {v: int}') + (
        '    columns: {w: "CAST(v AS VARCHAR)"}\n    drop: [v]\n    where: id <> 4\n'
        '    expect: {known: {check: "id <> 1", action: reject}}\n')
    file.write_text(with_int)
    server.run("run", str(file), "--once")
    letters = "SELECT count(*) AS n FROM landing.events__rejected"
    assert server.sql(letters) == [{"n": 4}]  # Two records, a file, a row of the transform.
    file.write_text(with_int.replace("{v: int}", "{v: string}"))
    with pytest.raises(CommandFailed) as other:
        server.run("landing", "replay-rejected", str(file))
    assert other.value.code == 1 and "apply it first" in other.value.errors
    server.run("pipeline", "apply", str(file))
    for task in ("p.events", "p.orders"):
        server.run("task", "start", task)
    before = server.json("dataset", "log", "default/landing/events")
    assert server.json("landing", "replay-rejected", str(file), "events") == {
        "name": "p", "replayed": 1, "rows": 1, "rejected": 1, "ofTransforms": 1,
        "withoutRecord": 1}
    wait_for(lambda: server.sql("SELECT id, w FROM orders.orders") == [{"id": 2, "w": "x"}])
    assert server.sql("SELECT hdr__file_row AS r, hdr__file_size AS s FROM landing.events "
                      "WHERE id = 2") == [{"r": 1, "s": (folder / "1.jsonl").stat().st_size}]
    assert len(server.json("dataset", "log", "default/landing/events")) == len(before) + 1
    assert server.sql(letters) == [{"n": 3}]
    again = server.json("landing", "replay-rejected", str(file))
    assert again["replayed"] == 0 and again["rejected"] == 1
    assert server.sql("SELECT count(*) AS n FROM landing.events") == [{"n": 3}]
    status = tasks_of(server)["p.events"]
    assert status["state"] == "RUNNING" and status["counts"]["replayed"] == 1
    assert status["rows_out"] == 3
    # The source goes on where it was.
    write_lines(folder / "3.jsonl", [{"id": 5, "v": "y"}])
    wait_for(lambda: len(server.sql("SELECT id FROM orders.orders")) == 2)
    assert server.sql("SELECT count(*) AS n FROM landing.events") == [{"n": 4}]
    with pytest.raises(CommandFailed) as missing:
        server.run("landing", "replay-rejected", str(file), "none")
    assert missing.value.code == 3


def test_a_reload_leaves_what_lands_meanwhile_to_the_task(server, place):
    """Where nothing differs, a reload changes nothing, whatever comes while it runs."""
    folder, file = place
    file.write_text(file.read_text() + "    history: true\n")
    ended = threading.Event()
    written = []

    def write():
        while not ended.is_set():
            number = len(written)
            write_lines(folder / f"{number:05}.jsonl",
                        [{"id": key, "v": number} for key in range(20)])
            written.append(number)
            time.sleep(0.03)

    writer = threading.Thread(target=write)
    running = follow(server, file)
    writer.start()
    try:
        wait_for(lambda: "p.orders" in tasks_of(server)
                 and tasks_of(server)["p.orders"]["rows_out"] > 0)
        for _ in range(5):
            server.run("task", "reload", "p.orders")
    finally:
        ended.set()
        writer.join()
        running.kill()
        running.wait()
    wait_for(lambda: server.sql("SELECT min(v) AS v FROM orders.orders") == [{"v": written[-1]}])
    assert server.sql("SELECT DISTINCT hdr__operation AS o FROM orders_internal.orders_internal "
                      "WHERE hdr__partition IN ('Current', 'Prior') ORDER BY o") == [
                          {"o": "I"}, {"o": "U"}]


def test_a_reload_leaves_an_input_that_begins_meanwhile_to_the_task(server, place):
    folder, file = place
    text = file.read_text()
    begin = text.index("  events:")
    end = text.index("transform:")
    others = text[begin:end].replace("events:", "others:").replace("*.jsonl", "*.other")
    file.write_text(text[:end] + others + text[end:].replace("from: events",
                                                             "from: [events, others]"))
    write_lines(folder / "1.jsonl", [{"id": n} for n in range(30_000)])
    running = follow(server, file)
    try:
        wait_for(lambda: tasks_of(server).get("p.orders", {}).get("rows_out") == 30_000)
        running.kill()
        running.wait()
        # Slow, and gives what is there.
        file.write_text(file.read_text() + "    columns: {id: \"id + 0 * levenshtein(repeat(CAST("
                        "id AS VARCHAR), 60), repeat('12', 150))\"}\n")
        server.run("pipeline", "apply", str(file))
        running = subprocess.Popen([binary(), "task", "reload", "p.orders", "--url", server.url,
                                    "--home", str(server.home)])
        wait_for(lambda: [table for table in server.json("table", "list")
                          if "reload" in table["name"]] != [])
        (folder / "2.part").write_text('{"id": -1}\n')
        (folder / "2.part").rename(folder / "2.other")
        wait_for(lambda: tasks_of(server)["p.others"]["rows_out"] == 1)
        assert running.poll() is None
        assert running.wait(timeout=120) == 0
    finally:
        running.kill()
        running.wait()
    wait_for(lambda: server.sql("SELECT min(id) AS id FROM orders.orders") == [{"id": -1}])
    server.run("task", "apply", "p.orders")
    assert server.sql("SELECT hdr__operation AS o, count(*) AS c FROM "
                      "orders_internal.orders_internal WHERE hdr__partition IN "
                      "('Current', 'Prior') GROUP BY o") == [{"o": "I", "c": 30_001}]


def test_a_reload_stops_when_it_is_told_to(tmp_path, place):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": n, "v": "a"} for n in range(150_000)])
    slow = ("    columns: {v: \"CAST(levenshtein(repeat(CAST(id AS VARCHAR), 100), "
            "repeat('12', 250)) AS VARCHAR)\"}\n")
    server = Server(tmp_path / "home").start()
    reload = [binary(), "task", "reload", "p.orders", "--url", server.url, "--home",
              str(server.home)]
    running = None

    def state():
        return (server.sql("SELECT count(*) AS c, max(v) AS v FROM orders.orders"),
                [table["name"] for table in server.json("table", "list")
                 if "reload" in table["name"]])

    def begin():
        begun = subprocess.Popen(reload, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: state()[1] != [])
        time.sleep(1)
        assert begun.poll() is None
        return begun, time.monotonic()

    try:
        server.run("run", str(file), "--once")
        file.write_text(file.read_text() + slow)
        server.run("pipeline", "apply", str(file))
        server.run("task", "start", "p.orders")
        as_it_was = ([{"c": 150_000, "v": "a"}], [])
        assert state() == as_it_was
        running, begun = begin()
        server.run("task", "stop", "p.orders")
        assert "was stopped before its end" in running.communicate(timeout=60)[1]
        assert running.returncode != 0 and time.monotonic() - begun < 15
        assert tasks_of(server)["p.orders"]["state"] == "STOPPED"
        assert state() == as_it_was
        server.run("task", "start", "p.orders")
        running, begun = begin()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=60) == 0
        assert time.monotonic() - begun < 15
        assert "does not end" not in server.log_text()
        running.communicate(timeout=60)
        assert running.returncode == 5
        with server:
            assert state() == as_it_was
    finally:
        if running is not None:
            running.kill()
        server.kill()


def test_a_range_of_transactions_is_reloaded(server, place):
    folder, file = place
    records = ({"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 1, "v": "c"})
    for number, record in enumerate(records):
        write_lines(folder / f"{number}.jsonl", [record])
        server.run("run", str(file), "--once")
    file.write_text(file.read_text() + "    columns: {v: \"upper(v)\"}\n")
    server.run("pipeline", "apply", str(file))
    landed = [one["rid"] for one in server.json("dataset", "log", "default/landing/events")]
    query = "SELECT id, v FROM orders.orders ORDER BY id"
    server.run("task", "reload", "p.orders", "--from", landed[2], "--to", landed[2])
    assert server.sql(query) == [{"id": 1, "v": "c"}, {"id": 2, "v": "b"}]  # 1 is newer.
    server.run("task", "reload", "p.orders", "--to", landed[1])
    assert server.sql(query) == [{"id": 1, "v": "c"}, {"id": 2, "v": "B"}]
    server.run("task", "reload", "p.orders", "--from", landed[0])
    assert server.sql(query) == [{"id": 1, "v": "C"}, {"id": 2, "v": "B"}]


def test_groups_and_roles(server):
    server.run("dataset", "create", "default/shared")
    user = server.json("user", "create", "ann")
    token = server.json("token", "create", "--user", "ann")["token"]
    group = server.json("group", "create", "readers", "--description", "who read")
    assert [(one["id"], one["name"]) for one in server.json("group", "list")] == [
        (group["id"], "readers")]
    server.run("group", "add", "readers", "--user", "ann")
    member = server.json("group", "members", "readers")[0]
    assert (member["principalId"], member["name"]) == (user["id"], "ann")

    def code_of(*words):
        try:
            server.run(*words)
        except CommandFailed as failure:
            return failure.code
        return 0

    def shows():
        return code_of("--token", token, "dataset", "show", "default/shared")

    assert shows() == 3
    server.run("role", "grant", "default/shared", "viewer", "--group", "readers")
    assert shows() == 0
    assert server.json("role", "list", "default/shared") == [
        {"role": "compass:view", "type": "GROUP", "principal": group["id"], "name": "readers"}]
    assert "readers" in server.run("role", "list", "default/shared")
    assert code_of("--token", token, "role", "grant", "default/shared", "owner", "--user",
                   user["id"]) in (3, 6)
    server.run("group", "remove", "readers", "--user", "ann")
    assert shows() == 3
    server.run("role", "grant", "default/shared", "Viewer", "--everyone")
    assert shows() == 0
    server.run("role", "revoke", "default/shared", "Viewer", "--everyone")
    assert shows() == 3
    for words, code in ((("group", "add", "readers"), 2),
                        (("group", "add", "readers", "--user", "bob"), 3),
                        (("group", "delete", "writers"), 3),
                        (("role", "grant", "default/shared", "boss", "--user", "ann"), 1),
                        (("role", "grant", "default/shared", "viewer"), 2),
                        (("role", "grant", "default/none", "viewer", "--user", "ann"), 3)):
        assert code_of(*words) == code, words
    server.run("group", "delete", "readers")
    assert server.json("group", "list") == []


def test_a_metastore_moves_to_another_home(tmp_path, place):
    folder, file = place
    write_lines(folder / "1.jsonl", [{"id": 1}, {"id": 2}])
    shared = {"TARN_WAREHOUSE": str(tmp_path / "warehouse")}
    bundle = tmp_path / "bundle"

    def metastore(home, *words):
        return subprocess.run([binary(), "metastore", *words, "--home", str(home)],
                              capture_output=True, text=True, env={**os.environ, **shared})

    with Server(tmp_path / "old", shared) as server:
        server.run("run", str(file), "--once")
        token = server.token()
        running = metastore(server.home, "export", str(bundle))
        assert running.returncode != 0 and "in use by process" in running.stderr
        assert not bundle.exists()
    old = tmp_path / "old"
    assert metastore(old, "check").returncode == 0
    done = metastore(old, "export", str(bundle))
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    assert metastore(old, "export", str(bundle)).returncode == 4
    assert metastore(old, "import", str(bundle)).returncode == 4

    new = tmp_path / "new"
    assert metastore(new, "import", str(bundle)).returncode == 3
    new.mkdir()
    text = bundle.read_bytes()
    (tmp_path / "cut").write_bytes(text[:len(text) // 2])
    cut = metastore(new, "import", str(tmp_path / "cut"))
    assert cut.returncode == 1 and "not whole" in cut.stderr
    assert not list(new.glob("metastore.db*"))
    done = metastore(new, "import", str(bundle))
    assert done.returncode == 0, done.stderr
    with Server(new, shared) as server:
        rows = server.sql("SELECT id FROM orders.orders ORDER BY id", "--token", token)
        assert rows == [{"id": 1}, {"id": 2}]
        write_lines(folder / "2.jsonl", [{"id": 3}])
        server.run("--token", token, "run", str(file), "--once")
        assert len(server.sql("SELECT id FROM orders.orders", "--token", token)) == 3


def test_a_lost_metastore_is_not_replaced_by_an_empty_one(tmp_path):
    home = tmp_path / "home"
    with Server(home) as server:
        token = server.token()
    kept = (home / "metastore.db").read_bytes()
    for lost in (None, b""):
        for file in home.glob("metastore.db*"):
            file.unlink()
        if lost is not None:
            (home / "metastore.db").write_bytes(lost)
        with pytest.raises(RuntimeError) as failure:
            Server(home).start()
        assert "was in use" in str(failure.value)
    (home / "metastore.db").write_bytes(kept)
    with Server(home) as server:
        assert server.token() == token and server.json("status")["tasks"] == []


def test_a_file_that_names_itself_is_refused(server, tmp_path):
    for text in ("pipeline: &a\n  x: *a\n", "pipeline: p\nsources: &s\n  f: *s\nlanding: {}\n"):
        (tmp_path / "c.yaml").write_text(text)
        with pytest.raises(CommandFailed) as failure:
            server.run("pipeline", "validate", str(tmp_path / "c.yaml"))
        assert failure.value.code in (1, 2) and "inside the value" in failure.value.errors
    assert server.json("status")["tasks"] == []
