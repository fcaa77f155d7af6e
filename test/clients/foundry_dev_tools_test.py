"""foundry-dev-tools, unmodified, over the internal endpoints it speaks."""

import io
import uuid

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foundry_dev_tools import Config, FoundryContext, JWTTokenProvider
from foundry_dev_tools.config.config_types import Host
from foundry_dev_tools.errors.compass import ResourceNotFoundError
from foundry_dev_tools.errors.dataset import (
    BranchesAlreadyExistError,
    BranchNotFoundError,
    DatasetAlreadyExistsError,
    DatasetHasNoSchemaError,
    DatasetNotFoundError,
)

from foundry_server import foundry  # noqa: F401: a fixture


def context_of(foundry, token):
    return FoundryContext(
        config=Config(),
        token_provider=JWTTokenProvider(host=Host(foundry.host, "http"), jwt=token))


@pytest.fixture(scope="module")
def context(foundry):
    return context_of(foundry, foundry.token)


@pytest.fixture
def path():
    return f"/Default/default/dev {uuid.uuid4()}"


@pytest.fixture
def dataset(context, path):
    return context.get_dataset_by_path(path, create_if_not_exist=True)


def test_who_am_i(foundry, context):
    me = context.multipass.get_user_info()
    assert me["username"] == "admin"
    assert me["id"] == foundry.client.admin.User.get_current().id


def test_a_dataset_by_path(context, dataset, path):
    assert dataset.path == path and dataset.branch["id"] == "master"
    again = context.get_dataset_by_path(path)
    assert again.rid == dataset.rid
    assert context.get_dataset(dataset.rid).path == path
    assert context.compass.get_path(dataset.rid) == path
    assert context.compass.get_paths([dataset.rid]) == {dataset.rid: path}
    assert context.catalog.api_get_dataset(dataset.rid).json()["rid"] == dataset.rid
    with pytest.raises(ResourceNotFoundError):
        context.get_dataset_by_path("/Default/default/none")
    with pytest.raises(DatasetNotFoundError):
        context.catalog.api_get_dataset(f"ri.foundry.main.dataset.{uuid.uuid4()}")
    with pytest.raises(DatasetAlreadyExistsError):
        context.catalog.api_create_dataset(path)


def test_files_go_in_and_out(context, dataset, tmp_path):
    dataset.put_file("a/ü b.txt", b"one", transaction_type="UPDATE")
    folder = tmp_path / "in"
    (folder / "x").mkdir(parents=True)
    (folder / "x" / "y.txt").write_text("two")
    (folder / "_hidden").write_text("three")
    dataset.upload_folder(folder)
    names = [file["logicalPath"] for file in dataset.list_files()]
    assert names == ["_hidden", "a/ü b.txt", "x/y.txt"]
    assert [f["logicalPath"] for f in dataset.list_files(page_size=1)] == names
    assert [f["logicalPath"] for f in dataset.list_files(exclude_hidden_files=True)] == names[1:]
    assert [f["logicalPath"] for f in dataset.list_files(logical_path="x")] == ["x/y.txt"]
    assert dataset.get_file("a/ü b.txt") == b"one"
    assert dataset.get_file("a/ü b.txt", range_header="bytes=1-2") == b"ne"
    out = tmp_path / "out"
    dataset.download_files(out)
    assert (out / "x" / "y.txt").read_text() == "two"
    dataset.delete_files(["a/ü b.txt"])
    assert [f["logicalPath"] for f in dataset.list_files()] == ["_hidden", "x/y.txt"]
    kinds = [t["type"] for t in dataset.get_transactions(10)]
    assert kinds == ["DELETE", "UPDATE", "UPDATE"]
    assert dataset.get_transactions(1)[0]["status"] == "COMMITTED"
    stats = context.catalog.api_get_dataset_stats(dataset.rid).json()
    assert (stats["numFiles"], stats["sizeInBytes"], stats["numHiddenFiles"]) == (1, 3, 1)


def test_transactions(context, dataset):
    dataset.start_transaction("SNAPSHOT")
    assert dataset.transaction["type"] in ("SNAPSHOT", "APPEND")
    rid = dataset.transaction["rid"]
    assert context.catalog.api_get_transaction(dataset.rid, rid).json()["type"] == "SNAPSHOT"
    dataset.put_file("a", b"1")
    dataset.put_file("b", b"2")
    with pytest.raises(Exception, match="FileAlreadyExists"):
        dataset.put_file("a", b"3")
    dataset.put_file("a", b"3", overwrite=True)
    dataset.remove_file("b")
    assert [f["logicalPath"] for f in dataset.list_files(
        include_open_exclusive_transaction=True)] == ["a"]
    assert dataset.list_files() == []
    dataset.commit_transaction()
    assert dataset.get_file("a") == b"3"
    dataset.start_transaction()
    dataset.put_file("c", b"4")
    dataset.abort_transaction()
    assert [f["logicalPath"] for f in dataset.list_files()] == ["a"]
    assert dataset.get_open_transaction() is None


def test_branches(context, dataset):
    dataset.put_file("a", b"1")
    dataset.create_branch("feature/a+b c", parent_branch_id="master")
    assert dataset.branch["id"] == "feature/a+b c"
    dataset.put_file("b", b"2")
    assert [f["logicalPath"] for f in dataset.list_files()] == ["a", "b"]
    assert dataset.get_file("b") == b"2"
    assert context.catalog.api_get_branches(dataset.rid).json() == ["feature/a+b c", "master"]
    with pytest.raises(BranchesAlreadyExistError):
        dataset.create_branch("feature/a+b c")
    dataset.switch_branch("master")
    assert [f["logicalPath"] for f in dataset.list_files()] == ["a"]
    with pytest.raises(BranchNotFoundError):
        dataset.switch_branch("none")
    context.catalog.api_update_branch(dataset.rid, "master", "feature/a+b c")
    assert [f["logicalPath"] for f in dataset.list_files()] == ["a", "b"]


def test_data_frames(context, dataset):
    frame = pd.DataFrame({"id": [1, 2], "text": ["a", "é"], "number": [0.5, None]})
    dataset.save_dataframe(frame)
    assert dataset.to_pandas().equals(frame)
    schema = context.metadata.api_get_dataset_schema(dataset.rid, "master").json()["schema"]
    assert [(f["name"], f["type"]) for f in schema["fieldSchemaList"]] == [
        ("id", "LONG"), ("text", "STRING"), ("number", "DOUBLE")]
    assert schema["dataFrameReaderClass"].endswith("ParquetDataFrameReader")
    assert all("customMetadata" in field for field in schema["fieldSchemaList"])
    chosen = dataset.query_foundry_sql("SELECT text WHERE id = 2", return_type="arrow")
    assert chosen.to_pylist() == [{"text": "é"}]
    more = context.foundry_sql_server.query_foundry_sql(
        f"SELECT count(*) AS n FROM `{dataset.path}`", return_type="arrow")
    assert more.to_pylist() == [{"n": 2}]


def test_a_dataset_without_schema(context, dataset):
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": [1]}), sink)
    dataset.put_file("a.parquet", sink.getvalue())
    with pytest.raises(DatasetHasNoSchemaError):
        context.metadata.api_get_dataset_schema(dataset.rid, "master")
    inferred = dataset.infer_schema()
    dataset.upload_schema(dataset.get_last_transaction()["rid"], inferred)
    stored = context.metadata.api_get_dataset_schema(dataset.rid, "master").json()["schema"]
    assert stored["fieldSchemaList"][0]["name"] == "id"


def test_folders_and_the_trash(foundry, context, dataset):
    name = f"folder {uuid.uuid4()}"
    folder = context.compass.api_create_folder(name, foundry.project).json()
    assert folder["path"] == f"/Default/default/{name}"
    inside = context.get_dataset_by_path(folder["path"] + "/x", create_if_not_exist=True)
    children = list(context.compass.get_child_objects_of_folder(folder["rid"], limit=1))
    assert [child["rid"] for child in children] == [inside.rid]
    context.compass.api_add_to_trash({inside.rid})
    assert context.compass.api_get_resource(inside.rid).json()["directlyTrashed"]
    context.compass.api_restore({inside.rid})
    assert not context.compass.api_get_resource(inside.rid).json()["inTrash"]
    with pytest.raises(ResourceNotFoundError):
        context.compass.api_get_resource(f"ri.compass.main.folder.{uuid.uuid4()}")


def test_strangers_see_nothing(foundry, context, dataset):
    dataset.put_file("a", b"1")
    _, _, token = foundry.make_user()
    stranger = context_of(foundry, token)
    with pytest.raises(DatasetNotFoundError):
        stranger.catalog.api_get_dataset(dataset.rid)
    with pytest.raises(ResourceNotFoundError):
        stranger.compass.api_get_resource(dataset.rid)
    for call in (
        lambda: stranger.data_proxy.api_get_file_in_view(dataset.rid, "master", "a"),
        lambda: stranger.catalog.list_dataset_files(dataset.rid),
        lambda: stranger.catalog.api_start_transaction(dataset.rid, "master"),
    ):
        with pytest.raises(DatasetNotFoundError):
            call()
