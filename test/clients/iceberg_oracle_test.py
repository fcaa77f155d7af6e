"""Other readers read the table that iceberg_test writes.

The C++ test SnapshotUpdateTest.TableForOtherReaders writes a partitioned table with position
deletes, two partition specs and a renamed column; PyIceberg, fastavro and DuckDB must see the same
rows. TableOperationOracleTest.VectorsForOtherReaders writes one of version 3 with deletion vectors.
Set TARN_ICEBERG_TEST to the built iceberg_test program.
"""

import os
import pathlib
import subprocess

import fastavro
import pytest
from pyiceberg.table import StaticTable

EXPECTED_IDS = [i for i in range(50) if i not in (7, 13)] + list(range(100, 110))


EXPECTED_VECTOR_IDS = [i for i in range(99) if i not in (3, 4, 5, 30)]


def write_table(root, test: str, name: str) -> str:
    """Runs one C++ test that writes the table; returns its metadata file."""
    program = os.environ["TARN_ICEBERG_TEST"]
    environment = dict(os.environ, TARN_ICEBERG_ORACLE_DIR=str(root))
    subprocess.run(
        [program, f"--gtest_filter={test}"],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    files = list((root / f"ns/{name}/metadata").glob("*.metadata.json"))
    assert len(files) == 1
    return str(files[0])


@pytest.fixture(scope="module")
def metadata_location(tmp_path_factory) -> str:
    root = tmp_path_factory.mktemp("warehouse")
    return write_table(root, "SnapshotUpdateTest.TableForOtherReaders", "oracle")


@pytest.fixture(scope="module")
def vectors_location(tmp_path_factory) -> str:
    root = tmp_path_factory.mktemp("warehouse")
    return write_table(root, "TableOperationOracleTest.VectorsForOtherReaders", "vectors")


def duckdb_with_iceberg():
    import duckdb

    connection = duckdb.connect()
    for extension in ("avro", "iceberg"):
        module = __import__(f"duckdb_extension_{extension}")
        folder = pathlib.Path(module.__file__).parent
        file = next(folder.rglob(f"{extension}.duckdb_extension"))
        connection.execute(f"INSTALL '{file}'")
        connection.execute(f"LOAD {extension}")
    return connection


def test_deletion_vectors_are_read_by_pyiceberg(vectors_location):
    table = StaticTable.from_metadata(vectors_location)
    assert table.metadata.format_version == 3
    rows = table.scan().to_arrow().sort_by("id")
    assert rows.column("id").to_pylist() == EXPECTED_VECTOR_IDS


def test_deletion_vectors_are_read_by_duckdb(vectors_location):
    rows = duckdb_with_iceberg().execute(
        f"SELECT id FROM iceberg_scan('{vectors_location}') ORDER BY id").fetchall()
    assert [row[0] for row in rows] == EXPECTED_VECTOR_IDS


def test_pyiceberg_sees_the_rows(metadata_location):
    table = StaticTable.from_metadata(metadata_location)
    rows = table.scan().to_arrow().sort_by("id")
    assert rows.column("id").to_pylist() == EXPECTED_IDS
    assert rows.column_names == ["part", "id", "note", "at", "amount"]
    assert rows.column("note").to_pylist()[0] == "row number 0 of the table"
    assert [str(a) for a in rows.column("amount").to_pylist()[:2]] == ["0.25", "1.25"]


def test_pyiceberg_prunes_by_partition_and_bounds(metadata_location):
    table = StaticTable.from_metadata(metadata_location)
    assert len(list(table.scan("part = 'y'").plan_files())) == 1
    assert len(list(table.scan("id < 5").plan_files())) == 1
    assert len(list(table.scan("at > '2200-01-01T00:00:00+00:00'").plan_files())) == 0
    assert table.scan("id = 7").to_arrow().num_rows == 0
    assert table.scan("id >= 105").to_arrow().num_rows == 5


def test_pyiceberg_inspects_files_and_snapshots(metadata_location):
    table = StaticTable.from_metadata(metadata_location)
    assert [s.summary.operation.value for s in table.metadata.snapshots] == ["append", "overwrite"]
    files = table.inspect.files()
    assert sorted(files.column("content").to_pylist()) == [0, 0, 1]
    assert sorted(files.column("record_count").to_pylist()) == [2, 10, 50]


def test_fastavro_reads_every_avro_file(metadata_location):
    for path in pathlib.Path(metadata_location).parent.glob("*.avro"):
        with open(path, "rb") as file:
            reader = fastavro.reader(file)
            assert reader.metadata["format-version"] == "2"
            assert list(reader)


def test_duckdb_sees_the_rows(metadata_location):
    connection = duckdb_with_iceberg()
    rows = connection.execute(
        f"SELECT id, note, part FROM iceberg_scan('{metadata_location}') ORDER BY id"
    ).fetchall()
    assert [row[0] for row in rows] == EXPECTED_IDS
    assert rows[-1] == (109, "row number 109 of the table", "y")
    one = connection.execute(
        f"SELECT count(*) FROM iceberg_scan('{metadata_location}') WHERE part = 'y'"
    ).fetchone()
    assert one == (10,)
