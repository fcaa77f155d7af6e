"""A warehouse in a bucket: the same jobs as in a folder, read by the same engines."""

import json

import pytest

from buckets import SECRET_KEY, BucketServer
from foreign import duckdb_with_iceberg
from server import Server

PIPELINE = """\
pipeline: p
sources:
  in: {{type: files, uri: {uri}}}
landing:
  events:
    source: in
    paths: ["*.jsonl"]
    content: {{type: json}}
transform:
  flat:
    from: events
    mode: append
  orders:
    from: events
    key: [id]
    history: true
    delete_when: "state = 'gone'"
"""


@pytest.fixture
def bucket(tmp_path):
    with BucketServer(tmp_path / "buckets") as running:
        yield running


@pytest.fixture
def server(tmp_path, bucket):
    home = tmp_path / "home"
    home.mkdir()
    (home / "tarn.toml").write_text(bucket.configuration())
    with Server(home, bucket.environment()) as running:
        yield running


@pytest.fixture
def pipeline(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINE.format(uri=folder.as_uri()))
    return file, folder


def write_lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def by_id(rows):
    return sorted(rows, key=lambda row: row["id"])


def read_with_pyiceberg(server, bucket, table):
    from pyiceberg.catalog.rest import RestCatalog

    catalog = RestCatalog("tarn", uri=server.url + "/iceberg", token=server.token(),
                          **bucket.properties())
    return catalog.load_table(table).scan().to_arrow().to_pylist()


def read_with_duckdb(server, bucket, table):
    connection = duckdb_with_iceberg()
    endpoint = bucket.endpoint.removeprefix("http://")
    connection.execute(
        f"CREATE SECRET files (TYPE s3, KEY_ID 'test', SECRET '{SECRET_KEY}', REGION 'us-east-1', "
        f"ENDPOINT '{endpoint}', URL_STYLE 'path', USE_SSL false)")
    connection.execute(f"CREATE SECRET tarn (TYPE ICEBERG, TOKEN '{server.token()}')")
    connection.execute(
        f"ATTACH 'default' AS tarn (TYPE ICEBERG, ENDPOINT '{server.url}/iceberg', SECRET tarn, "
        "ACCESS_DELEGATION_MODE 'none')")
    return connection.execute(f"SELECT * FROM tarn.{table}").to_arrow_table().to_pylist()


def test_a_pipeline_lives_in_a_bucket(server, bucket, pipeline):
    file, folder = pipeline
    records = [{"id": i, "state": "new", "price": i / 4} for i in range(100)]
    write_lines(folder / "1.jsonl", records)
    server.run("run", str(file), "--once")
    assert by_id(server.sql("SELECT id, state, price FROM flat.flat")) == records
    write_lines(folder / "2.jsonl", [{"id": 3, "state": "gone", "price": 0.0},
                                     {"id": 4, "state": "paid", "price": 9.5}])
    server.run("run", str(file), "--once")
    expected = [dict(record, **({"state": "paid", "price": 9.5} if record["id"] == 4 else {}))
                for record in records if record["id"] != 3]
    assert by_id(server.sql("SELECT * FROM orders.orders")) == expected
    assert len(server.sql("SELECT id FROM orders.orders__history")) == 102
    for read in (read_with_pyiceberg, read_with_duckdb):
        assert by_id(read(server, bucket, "orders.orders__applied")) == expected
        assert len(read(server, bucket, "flat_internal.flat_internal")) == 102
    objects = bucket.objects()
    assert any(name.endswith(".metadata.json") for name in objects)
    assert all(name.startswith("warehouse/") for name in objects)
    assert not any(".tarn-probe" in name or ".sgwtmp" in name for name in objects)
    assert not (server.home / "warehouse").exists()


def test_it_is_all_there_after_a_restart(server, bucket, pipeline):
    file, folder = pipeline
    write_lines(folder / "1.jsonl", [{"id": 1, "state": "new"}])
    server.run("run", str(file), "--once")
    server.kill()
    server.start()
    assert server.sql("SELECT id FROM orders.orders") == [{"id": 1}]


def test_datasets_keep_their_files_in_the_bucket(server, tmp_path):
    large = tmp_path / "large.bin"
    large.write_bytes(bytes(range(256)) * (20 << 12))  # Of two parts.
    (tmp_path / "empty.bin").write_bytes(b"")
    server.run("dataset", "create", "default/files")
    server.run("dataset", "put", "default/files", str(large), str(tmp_path / "empty.bin"))
    back = tmp_path / "back"
    server.run("dataset", "get", "default/files", "--to", str(back))
    assert (back / "large.bin").read_bytes() == large.read_bytes()
    assert (back / "empty.bin").read_bytes() == b""


def test_secrets_are_nowhere(server, bucket, pipeline):
    file, folder = pipeline
    write_lines(folder / "1.jsonl", [{"id": 1, "state": "new"}])
    server.run("run", str(file), "--once")
    secrets = server.run("sql", "SELECT * FROM duckdb_secrets()", "--format", "json", check=False)
    assert SECRET_KEY not in secrets
    server.stop()
    assert SECRET_KEY not in server.log_text()
    for path in server.home.rglob("*"):
        if path.is_file():
            assert SECRET_KEY.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("change, message", [
    (("LAKE_SECRET", "wrong"), "SignatureDoesNotMatch"),
    (("LAKE_SECRET", ""), "stores.lake.secret_key_env"),
])
def test_wrong_secrets_are_said_at_the_start(tmp_path, bucket, change, message):
    home = tmp_path / "home"
    home.mkdir()
    (home / "tarn.toml").write_text(bucket.configuration())
    with pytest.raises(RuntimeError, match=message) as failed:
        Server(home, dict(bucket.environment(), **dict([change]))).start()
    assert SECRET_KEY not in str(failed.value)


def test_wrong_keys_of_a_store_are_said_at_the_start(tmp_path, bucket):
    home = tmp_path / "home"
    home.mkdir()
    (home / "tarn.toml").write_text(bucket.configuration() + 'bogus = "x"\n')
    with pytest.raises(RuntimeError, match="stores.lake.bogus"):
        Server(home, bucket.environment()).start()
