"""Several servers on one metastore in PostgreSQL."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline_test import APPEND, by_id, write_lines, write_pipeline
from postgres import PASSWORD, Postgres
from server import CommandFailed, Server, binary, follow, tasks_of, wait_for


@pytest.fixture(scope="module")
def postgres():
    # Not among the folders of pytest: each run that begins closes those to other users again.
    with tempfile.TemporaryDirectory(prefix="tarn-postgres-") as folder:
        with Postgres(pathlib.Path(folder) / "cluster") as running:
            yield running


def environment(url, warehouse):
    return {"TARN_METASTORE": url, "TARN_WAREHOUSE": str(warehouse), "PGPASSWORD": PASSWORD}


def second_home(first, home):
    """A home beside the first one, whose user has its token."""
    home.mkdir(mode=0o700)
    shutil.copy(first.home / "tarn.toml", home)
    shutil.copy(first.home / "admin-token", home)
    return home


def metastore(server, *words):
    done = subprocess.run([binary(), "metastore", *words, "--home", str(server.home)],
                          env={**os.environ, **server.environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ids(server):
    try:
        return sorted(row["id"] for row in server.sql("SELECT id FROM flat.flat"))
    except CommandFailed:
        return None  # Not there yet, or the database is away.


def test_what_one_server_writes_another_reads_and_goes_on_with(postgres, tmp_path):
    shared = environment(postgres.new_database("two"), tmp_path / "warehouse")
    file, folder = write_pipeline(tmp_path, APPEND)
    write_lines(folder / "a.jsonl", [{"id": 1}, {"id": 2}])
    first = Server(tmp_path / "first", shared)
    second = Server(tmp_path / "second", shared)
    with first:
        second_home(first, tmp_path / "second")
        with second:
            # A dataset.
            (tmp_path / "note.txt").write_text("kept")
            first.run("dataset", "create", "default/notes")
            first.run("dataset", "put", "default/notes", str(tmp_path / "note.txt"))
            assert "note.txt" in second.run("dataset", "ls", "default/notes")
            second.run("dataset", "branch", "create", "default/notes", "work")
            assert "work" in first.run("dataset", "branch", "list", "default/notes")
            # A pipeline, and who runs it.
            following = follow(first, file)
            wait_for(lambda: ids(second) == [1, 2])
            assert tasks_of(second)["p.flat"]["state"] == "RUNNING"
            with pytest.raises(CommandFailed) as refused:
                second.run("run", str(file), "--once")
            assert first.url in refused.value.errors, refused.value.errors
            # The one that runs it is gone, and the other takes over.
            first.kill()
            following.wait(timeout=60)
            write_lines(folder / "b.jsonl", [{"id": 3}])
            wait_for(lambda: ids(second) == [1, 2, 3], seconds=60)
            assert "is sound" in metastore(second, "check")
            for server in (first, second):
                assert PASSWORD not in server.log_text()


def test_commits_of_two_servers_to_one_dataset_are_all_there(postgres, tmp_path):
    shared = environment(postgres.new_database("commits"), tmp_path / "warehouse")
    first = Server(tmp_path / "first", shared)
    with first:
        second_home(first, tmp_path / "second")
        with Server(tmp_path / "second", shared) as second:
            first.run("dataset", "create", "default/d")
            uploads = []
            for i in range(4):
                source = tmp_path / f"{i}.txt"
                source.write_text(str(i))
                server = (first, second)[i % 2]
                first.run("dataset", "branch", "create", "default/d", f"b{i}")
                uploads.append((server, source, f"b{i}"))
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda u: u[0].run("dataset", "put", "default/d", str(u[1]),
                                                 "--branch", u[2]), uploads))
            for server, source, branch in uploads:
                other = second if server is first else first
                assert source.name in other.run("dataset", "ls", "default/d", "--branch", branch)


def test_a_metastore_moves_from_sqlite_to_postgresql(postgres, tmp_path):
    file, folder = write_pipeline(tmp_path, APPEND)
    write_lines(folder / "a.jsonl", [{"id": 1}])
    warehouse = {"TARN_WAREHOUSE": str(tmp_path / "warehouse")}
    server = Server(tmp_path / "home", warehouse)
    with server:
        server.run("run", str(file), "--once")
    bundle = tmp_path / "bundle"
    metastore(server, "export", str(bundle))
    url = postgres.new_database("moved")
    server.environment = environment(url, tmp_path / "warehouse")
    with pytest.raises(RuntimeError, match="is empty, but the home"):
        server.start()
    metastore(server, "import", str(bundle))
    assert "is sound" in metastore(server, "check")
    with server:
        assert by_id(server.sql("SELECT id FROM flat.flat")) == [{"id": 1}]
        write_lines(folder / "b.jsonl", [{"id": 2}])
        server.run("run", str(file), "--once")
        assert by_id(server.sql("SELECT id FROM flat.flat")) == [{"id": 1}, {"id": 2}]


def test_an_import_that_failed_is_not_taken_for_a_new_metastore(postgres, tmp_path):
    server = Server(tmp_path / "home", {"TARN_WAREHOUSE": str(tmp_path / "warehouse")})
    with server:
        token = server.token()
        server.run("dataset", "create", "default/d")
    bundle = tmp_path / "bundle"
    metastore(server, "export", str(bundle))
    whole = bundle.read_bytes()
    bundle.write_bytes(whole[:-200])
    server.environment = environment(postgres.new_database("broken"), tmp_path / "warehouse")
    with pytest.raises(AssertionError, match="bundle"):
        metastore(server, "import", str(bundle))
    with pytest.raises(RuntimeError, match="is empty, but the home"):
        server.start()
    assert server.token() == token
    bundle.write_bytes(whole)  # And nothing is in the way of the next one.
    metastore(server, "import", str(bundle))
    with server:
        assert server.token() == token
        server.run("dataset", "ls", "default/d")


def test_an_old_holder_of_the_pipelines_leaves_their_tasks_alone(postgres, tmp_path):
    file, folder = write_pipeline(tmp_path, APPEND)
    write_lines(folder / "a.jsonl", [{"id": 1}])
    variables = environment(postgres.new_database("stalled"), tmp_path / "warehouse")
    first = Server(tmp_path / "first", variables)
    second = Server(tmp_path / "second", variables)
    with first:
        second_home(first, tmp_path / "second")
        running = follow(first, file)
        wait_for(lambda: ids(first) == [1])
        running.kill()
        running.wait()
        first.process.send_signal(signal.SIGSTOP)  # Longer than its lease lasts.
        try:
            with second:
                write_lines(folder / "b.jsonl", [{"id": 2}])
                wait_for(lambda: ids(second) == [1, 2], seconds=60)
                first.process.send_signal(signal.SIGCONT)
                wait_for(lambda: "does not run the pipelines any more" in first.log_text(),
                         seconds=60)
                for number in range(3, 8):
                    write_lines(folder / f"{number}.jsonl", [{"id": number}])
                    wait_for(lambda: ids(second) == list(range(1, number + 1)), seconds=60)
                assert {task["state"] for task in tasks_of(second).values()} == {"RUNNING"}
        finally:
            first.process.send_signal(signal.SIGCONT)


def test_a_server_says_what_its_configuration_lacks(postgres, tmp_path):
    server = Server(tmp_path / "home", {"TARN_METASTORE": postgres.new_database("alone"),
                                        "PGPASSWORD": PASSWORD})
    with pytest.raises(RuntimeError, match="warehouse must be set"):
        server.start()
    server.environment |= {"TARN_WAREHOUSE": str(tmp_path / "warehouse"), "PGPASSWORD": "wrong-one"}
    with pytest.raises(RuntimeError, match="password authentication failed"):
        server.start()
    assert "wrong-one" not in server.log_text()
