"""The package runs wherever it is put, with no library of the machine but glibc's."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from server import REPOSITORY, Server, binary

sys.path.insert(0, str(REPOSITORY / "tools"))

import package  # noqa: E402

GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0",
         "libresolv.so.2", "libutil.so.1"}


@pytest.fixture
def packed(tmp_path, monkeypatch):
    build = pathlib.Path(binary()).resolve().parent
    package.install(build, tmp_path / "made")
    place = (tmp_path / "made").rename(tmp_path / "another place")
    monkeypatch.setenv("TARN_BINARY", str(place / "bin" / "tarn"))
    return place


def test_every_library_but_glibc_is_inside(packed):
    told = subprocess.run([packed / "bin" / "tarn"], env={"LD_TRACE_LOADED_OBJECTS": "1"},
                          capture_output=True, text=True, check=True).stdout
    assert "not found" not in told
    found = [line.split(" => ") for line in told.splitlines() if " => " in line]
    inside = [path for _, path in found
              if os.path.normpath(path).startswith(str(packed / "lib" / "tarn"))]
    outside = {name.strip() for name, path in found if path not in inside}
    assert len(inside) > 20
    assert outside <= GLIBC, outside - GLIBC
    assert (packed / "lib" / "tarn" / "httpfs.duckdb_extension").exists()


def test_a_server_of_the_package_serves(packed, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,x\n2,y\n")
    with Server(tmp_path / "home", {"PATH": os.defpath}) as server:
        server.run("dataset", "create", "default/d")
        server.run("dataset", "put", "default/d", str(tmp_path / "rows.csv"))
        assert [file["path"] for file in json.loads(
            server.run("dataset", "ls", "default/d", "--json"))] == ["rows.csv"]
        assert server.sql("SELECT 40 + 2 AS answer") == [{"answer": 42}]
