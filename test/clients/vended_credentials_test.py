"""Clients without keys of their own: what the catalog hands out is all they need, and no more."""

import pyarrow as pa
import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError

from iceberg_server import Iceberg

from buckets import SECRET_KEY, BucketServer, SessionServer
from server import Server
from foreign import duckdb_with_iceberg

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None]})


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    with SessionServer(tmp_path_factory.mktemp("store") / "s") as running:
        yield running


@pytest.fixture(scope="module")
def iceberg(tmp_path_factory, bucket):
    home = tmp_path_factory.mktemp("vended") / "home"
    home.mkdir()
    (home / "tarn.toml").write_text(bucket.configuration())
    with Server(home, bucket.environment()) as running:
        made = Iceberg(running)
        assert made.rest("POST", "/namespaces", json={"namespace": ["shop"]}).status_code == 200
        yield made


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    """Of this machine."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def make_user(iceberg, name, role):
    _, token = iceberg.make_user(name)
    iceberg.server.run("role", "grant", "default", role, "--user", name)
    return token


def keys_of(iceberg, table, token=None):
    answer = iceberg.rest("GET", f"/namespaces/shop/tables/{table}/credentials", token=token)
    (only,) = answer.json()["storage-credentials"]
    return only["prefix"], only["config"]


class Holder:
    """Whoever has keys that the catalog gave, at work on the store without the catalog."""

    def __init__(self, bucket, config):
        self.files = bucket.files(config["s3.access-key-id"], config["s3.secret-access-key"],
                                  config["s3.session-token"])

    def may(self, what, uri):
        path = uri.removeprefix("s3://")
        try:
            if what == "read":
                with self.files.open_input_file(path) as file:
                    file.read()
            elif what == "write":
                with self.files.open_output_stream(path) as file:
                    file.write(b"x")
            else:
                self.files.delete_file(path)
        except (OSError, PermissionError) as error:
            assert "ACCESS_DENIED" in str(error) or "403" in str(error), error
            return False
        return True


def test_pyiceberg_writes_and_reads_without_keys(iceberg):
    catalog = iceberg.catalog()
    table = catalog.create_table("shop.orders", schema=ROWS.schema)
    table.append(ROWS)
    table.delete("id = 2")
    again = iceberg.catalog().load_table("shop.orders")
    assert sorted(again.scan().to_arrow()["id"].to_pylist()) == [1, 3]
    assert again.io.properties["s3.access-key-id"].startswith("ASIA")
    with catalog.create_table_transaction("shop.staged", schema=ROWS.schema) as transaction:
        transaction.append(ROWS)
    assert len(iceberg.catalog().load_table("shop.staged").scan().to_arrow()) == 3


def test_readers_can_read_and_nothing_else(iceberg, bucket):
    iceberg.catalog().create_table("shop.read", schema=ROWS.schema).append(ROWS)
    token = make_user(iceberg, "reader", "viewer")
    table = iceberg.catalog(token).load_table("shop.read")
    assert len(table.scan().to_arrow()) == 3
    with pytest.raises((PermissionError, OSError)):
        table.append(ROWS)
    prefix, config = keys_of(iceberg, "read", token)
    assert prefix == table.location() + "/"
    file = table.inspect.files()["file_path"][0].as_py()
    holder = Holder(bucket, config)
    assert holder.may("read", file)
    assert not holder.may("write", prefix + "data/x")
    assert not holder.may("delete", file)


def test_keys_end_at_the_table(iceberg, bucket):
    catalog = iceberg.catalog()
    one = catalog.create_table("shop.one", schema=ROWS.schema)
    two = catalog.create_table("shop.two", schema=ROWS.schema)
    two.append(ROWS)
    prefix, config = keys_of(iceberg, "one")
    holder = Holder(bucket, config)
    assert holder.may("write", prefix + "data/x") and holder.may("read", prefix + "data/x")
    file = two.inspect.files()["file_path"][0].as_py()
    assert [holder.may(what, file) for what in ("read", "write", "delete")] == [False] * 3
    # Names that begin as the table's folder does.
    assert not holder.may("write", one.location() + "x/data/x")


def test_the_answer_says_how_long(iceberg):
    iceberg.catalog().create_table("shop.long", schema=ROWS.schema)
    headers = {"X-Iceberg-Access-Delegation": "vended-credentials"}
    answer = iceberg.rest("GET", "/namespaces/shop/tables/long", headers=headers)
    config = answer.json()["config"]
    assert config["client.refresh-credentials-endpoint"] == \
        "v1/namespaces/shop/tables/long/credentials"
    assert answer.headers["Cache-Control"] == "no-store"
    again = iceberg.rest("GET", "/namespaces/shop/tables/long", headers=headers).json()["config"]
    assert again == config
    through = requests.get(
        f"{iceberg.uri}/{config['client.refresh-credentials-endpoint']}",
        headers={"Authorization": f"Bearer {iceberg.token}"}, timeout=60).json()
    assert through["storage-credentials"][0]["config"]["s3.session-token-expires-at-ms"] == \
        config["s3.session-token-expires-at-ms"]


def test_strangers_get_no_keys(iceberg):
    iceberg.catalog().create_table("shop.secret", schema=ROWS.schema)
    _, token = iceberg.make_user("stranger")
    path = "/namespaces/shop/tables/secret/credentials"
    assert iceberg.rest("GET", path, token=token).status_code == 404
    with pytest.raises((NoSuchTableError, ForbiddenError)):
        iceberg.catalog(token).load_table("shop.secret")


def test_duckdb_reads_and_writes_without_keys(iceberg):
    iceberg.catalog().create_table("shop.duck", schema=ROWS.schema).append(ROWS)
    lake = duckdb_with_iceberg()
    lake.execute(f"CREATE SECRET tarn (TYPE ICEBERG, TOKEN '{iceberg.token}')")
    lake.execute(f"ATTACH 'default' AS lake (TYPE ICEBERG, ENDPOINT '{iceberg.uri}', SECRET tarn)")
    lake.execute("INSERT INTO lake.shop.duck VALUES (4, 'd')")
    assert lake.execute("SELECT id FROM lake.shop.duck ORDER BY id").fetchall() == \
        [(1,), (2,), (3,), (4,)]


def test_secrets_are_nowhere(iceberg):
    iceberg.catalog().create_table("shop.hush", schema=ROWS.schema)
    _, config = keys_of(iceberg, "hush")
    key = "0190a1b2-0000-7000-8000-000000000002"
    made = iceberg.rest(
        "POST", "/namespaces/shop/tables",
        headers={"X-Iceberg-Access-Delegation": "vended-credentials", "Idempotency-Key": key},
        json={"name": "hush2", "schema": {"type": "struct", "fields": []}}).json()["config"]
    secrets = [SECRET_KEY, config["s3.secret-access-key"], made["s3.secret-access-key"],
               made["s3.session-token"]]
    for file in [iceberg.server.home.parent / "home.log", *iceberg.server.home.rglob("*")]:
        if file.is_file():
            content = file.read_bytes()
            assert not [secret for secret in secrets if secret.encode() in content], file


def test_a_token_service_that_refuses_is_named(tmp_path, bucket):
    home = tmp_path / "home"
    home.mkdir()
    (home / "tarn.toml").write_text(bucket.configuration().replace("/Vended", "/Other"))
    with Server(home, bucket.environment()) as running:
        iceberg = Iceberg(running)
        iceberg.rest("POST", "/namespaces", json={"namespace": ["refused"]})
        body = {"name": "t", "schema": {"type": "struct", "fields": []}}
        headers = {"X-Iceberg-Access-Delegation": "vended-credentials"}
        path = "/namespaces/refused/tables"
        refused = iceberg.rest("POST", path, json=body, headers=headers)
        assert refused.status_code == 503 and "token service" in refused.text
        # Nothing was made, and clients with keys of their own are not in need of the service.
        assert iceberg.rest("POST", path, json=body).status_code == 200


def test_static_keys_are_handed_out_only_where_the_operator_says_so(tmp_path):
    with BucketServer(tmp_path / "buckets") as store:
        for number, (said, wants) in enumerate([
                ("", None),
                ('vended_credentials = "static"\nwrite_key_env = "LAKE_KEY"\n'
                 'write_secret_env = "LAKE_SECRET"\n', "test")]):
            home = tmp_path / f"home{number}"
            home.mkdir()
            (home / "tarn.toml").write_text(store.configuration() + said)
            with Server(home, store.environment()) as running:
                iceberg = Iceberg(running)
                name = f"static{number}"
                iceberg.rest("POST", "/namespaces", json={"namespace": [name]})
                token = make_user(iceberg, "reader", "viewer")
                catalog = RestCatalog("tarn", uri=iceberg.uri, token=iceberg.token)
                if wants is None:
                    headers = {"X-Iceberg-Access-Delegation": "vended-credentials"}
                    made = iceberg.rest(
                        "POST", f"/namespaces/{name}/tables", headers=headers,
                        json={"name": "t", "schema": {"type": "struct", "fields": []}}).json()
                    assert made["config"] == {} and "storage-credentials" not in made
                else:
                    table = catalog.create_table(f"{name}.t", schema=ROWS.schema)
                    table.append(ROWS)
                    assert table.io.properties["s3.access-key-id"] == wants
                    assert len(catalog.load_table(f"{name}.t").scan().to_arrow()) == 3
                answer = iceberg.rest("GET", f"/namespaces/{name}/tables/t/credentials",
                                      token=token)
                assert answer.json() == {"storage-credentials": []}
