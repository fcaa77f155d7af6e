"""Names that are easily mistaken or wanted by several at once, through the command line."""

import json
import subprocess

import pytest

from server import CommandFailed, binary

NAMES = [
    "plain", "nested/a/b", "with space", "~tilde", "%20", "%2F", "a%2Fb", "+", "&", "#", "ü",
    "a\u0308", "a[1].csv", "*.csv", "?", "{x}", "weird\\nfile", 'a"b', "new\nline", "tab\t", "-x",
    "files", "content", "a", "a.csv", "x/content", "日本語", "." + "d" * 254,
]


@pytest.fixture
def filled(server, tmp_path):
    """A dataset with a file of each name, whose content is the name, and one without content."""
    folder = tmp_path / "folder"
    for name in NAMES:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(name.encode())
    (folder / "empty").write_bytes(b"")
    server.run("dataset", "create", "default/names")
    server.run("dataset", "put", "default/names", str(folder))
    return folder


def paths(server, *arguments):
    return [file["path"] for file in server.json("dataset", "ls", "default/names", *arguments)]


def test_what_is_put_is_listed_and_got(server, filled, tmp_path):
    assert sorted(paths(server)) == sorted([*NAMES, "empty"])
    out = tmp_path / "out"
    server.run("dataset", "get", "default/names", "--to", str(out))
    for name in NAMES:
        assert (out / name).read_bytes() == name.encode(), name
    assert (out / "empty").read_bytes() == b""
    for name in NAMES:
        if not name.startswith("-"):
            got = server.bytes("dataset", "get", "default/names", name, "--to", "-")
            assert got == name.encode(), name


def test_names_are_shown_on_one_line_and_exact_in_json(server, filled):
    lines = server.run("dataset", "ls", "default/names").splitlines()
    assert len(lines) == len(NAMES) + 2
    assert all("\t" not in line and "\x1b" not in line for line in lines)


def test_names_are_no_patterns(server, filled):
    assert paths(server, "a[1]") == ["a[1].csv"]
    assert paths(server, "*") == ["*.csv"]
    assert paths(server, "a") == ["a"]  # A prefix that is a whole name is that file.
    assert sorted(paths(server, "nested/")) == ["nested/a/b"]
    for name in ("a", "*.csv", "?", "a[1].csv", "%20", "new\nline"):
        server.run("dataset", "rm", "default/names", name)
        left = paths(server)
        assert name not in left
        # Exactly that one: no folder, no pattern.
        assert "a.csv" in left and "a%2Fb" in left and "nested/a/b" in left
    with pytest.raises(CommandFailed) as failure:
        server.run("dataset", "rm", "default/names", "nested/a")
    assert failure.value.code == 3


@pytest.mark.parametrize("name", ["/absolute", "a//b", "a/../b", "..", ".", "dir/", "x" * 5000])
def test_names_that_are_none_are_refused(server, filled, tmp_path, name):
    before = paths(server)
    with pytest.raises(CommandFailed) as failure:
        server.run("dataset", "put", "default/names", str(filled / "plain"), "--as", name)
    assert failure.value.code in (1, 2)
    assert paths(server) == before
    # Nothing stays open.
    server.run("dataset", "put", "default/names", str(filled / "plain"), "--wait", "0")


def test_columns_with_odd_names_are_columns(server, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    record = {"id": 1, "x:y": 2, "1st-col": 3, "열": 4, "a b": 5, "select": 6, 'q"q': 7}
    (folder / "a.jsonl").write_text(json.dumps(record) + "\n")
    file = tmp_path / "p.yaml"
    file.write_text(f"""\
pipeline: p
sources:
  in: {{type: files, uri: "{folder.as_uri()}"}}
landing:
  events: {{source: in}}
transform:
  odd: {{from: events, key: [id]}}
""")
    server.run("run", str(file), "--once")
    assert server.sql("SELECT * FROM odd.odd") == [record]
    assert server.sql('SELECT "x:y", "1st-col", "열", "q""q" FROM odd.odd') == [
        {name: record[name] for name in ("x:y", "1st-col", "열", 'q"q')}]


@pytest.mark.parametrize("words", [
    ("dataset", "create", "default/one"), ("folder", "create", "default/one"),
    ("sql", "CREATE SCHEMA one"), ("sql", "CREATE TABLE s.one AS SELECT 1 AS id"),
    ("dataset", "branch", "create", "default/d", "one"),
    ("user", "create", "one"),
])
def test_one_of_many_creators_wins(server, words):
    server.run("sql", "CREATE SCHEMA s")
    server.run("dataset", "create", "default/d")
    creators = [subprocess.Popen([binary(), *words, "--url", server.url, "--home",
                                  str(server.home)], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL) for _ in range(12)]
    codes = [creator.wait(timeout=60) for creator in creators]
    assert sorted(codes) == [0] + [4] * 11
