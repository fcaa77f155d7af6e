"""Views, SQL queries and version 1 of the API through the vendor's Python library."""

import io
import time
import uuid

import foundry_sdk
import foundry_sdk.v1
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foundry_sdk import Config, UserTokenAuth
from foundry_sdk.v2.datasets import errors
from foundry_sdk.v2.sql_queries import errors as sql_errors

from foundry_server import foundry  # noqa: F401: a fixture

LATEST = {"type": "duplicate", "deletionColumn": "gone",
          "resolutionStrategy": {"type": "latestWins", "columns": ["version"]}}
FIELDS = [("id", "LONG"), ("text", "STRING"), ("version", "LONG"), ("gone", "BOOLEAN"),
          ("weight", "DOUBLE")]


def fill(foundry, rid, rows, **selection):
    """Adds rows (id, text, version, gone) as one file and puts their schema."""
    table = pa.table({
        "id": pa.array([row[0] for row in rows], pa.int64()),
        "text": [row[1] for row in rows],
        "version": pa.array([row[2] for row in rows], pa.int64()),
        "gone": pa.array([row[3] if len(row) > 3 else False for row in rows], pa.bool_()),
        "weight": pa.array([0.5] * len(rows), pa.float64()),
    })
    sink = io.BytesIO()
    pq.write_table(table, sink)
    datasets = foundry.client.datasets.Dataset
    datasets.File.upload(rid, f"{uuid.uuid4()}.parquet", sink.getvalue(),
                         transaction_type="APPEND", **selection)
    datasets.put_schema(rid, schema={"fieldSchemaList": [
        {"type": kind, "name": name, "nullable": True} for name, kind in FIELDS]}, **selection)


def backing(rid, **options):
    return {"datasetRid": rid, "stopPropagatingMarkingIds": [], **options}


def read(client, rid, **options):
    answer = client.datasets.Dataset.read_table(rid, format="ARROW", **options)
    rows = pa.ipc.open_stream(pa.py_buffer(bytes(answer))).read_all().to_pylist()
    return sorted(((row["id"], row["text"]) for row in rows))


@pytest.fixture
def views(foundry):
    return foundry.client.datasets.View


@pytest.fixture
def inputs(foundry):
    first, second = foundry.make_dataset().rid, foundry.make_dataset().rid
    fill(foundry, first, [(1, "old", 1), (2, "old", 1)])
    fill(foundry, second, [(2, "new", 2), (3, "new", 2)])
    return first, second


def make_view(foundry, views, rids, **options):
    return views.create(view_name=f"view {uuid.uuid4()}", parent_folder_rid=foundry.project,
                        backing_datasets=[backing(rid) for rid in rids], **options)


def test_a_view_shows_the_rows_of_its_datasets(foundry, views, inputs):
    first, second = inputs
    view = make_view(foundry, views, [first])
    assert (view.branch, [b.dataset_rid for b in view.backing_datasets]) == ("master", [first])
    assert views.get(view.dataset_rid) == view
    assert read(foundry.client, view.dataset_rid) == [(1, "old"), (2, "old")]
    both = views.add_backing_datasets(
        view.dataset_rid, backing_datasets=[backing(first), backing(second)])
    assert [b.dataset_rid for b in both.backing_datasets] == [first, second]
    rows = [(1, "old"), (2, "new"), (2, "old"), (3, "new")]
    assert read(foundry.client, view.dataset_rid) == rows
    fill(foundry, first, [(4, "late", 3)])
    assert (4, "late") in read(foundry.client, view.dataset_rid)
    views.remove_backing_datasets(
        view.dataset_rid,
        backing_datasets=[backing(first), backing(f"ri.foundry.main.dataset.{uuid.uuid4()}")])
    assert read(foundry.client, view.dataset_rid) == [(2, "new"), (3, "new")]
    views.replace_backing_datasets(view.dataset_rid, backing_datasets=[backing(first)])
    assert (1, "old") in read(foundry.client, view.dataset_rid)
    resource = foundry.client.filesystem.Resource.get(view.dataset_rid)
    assert resource.display_name == view.view_name


def test_a_key_keeps_the_newest_row(foundry, views, inputs):
    view = make_view(foundry, views, inputs)
    keyed = views.add_primary_key(
        view.dataset_rid, primary_key={"columns": ["id"], "resolution": LATEST})
    assert keyed.primary_key.columns == ["id"]
    assert keyed.primary_key.resolution.resolution_strategy.columns == ["version"]
    assert read(foundry.client, view.dataset_rid) == [(1, "old"), (2, "new"), (3, "new")]
    fill(foundry, inputs[1], [(1, "gone", 9, True)])
    assert read(foundry.client, view.dataset_rid) == [(2, "new"), (3, "new")]
    with pytest.raises(errors.ViewPrimaryKeyCannotBeModified):
        views.add_primary_key(
            view.dataset_rid, primary_key={"columns": ["id"], "resolution": {"type": "unique"}})


def test_what_a_key_must_be(foundry, views, inputs):
    def key(columns, **resolution):
        return {"columns": columns, "resolution": {**LATEST, **resolution}}

    for error, wanted in [
        (errors.ViewPrimaryKeyMustContainAtLeastOneColumn, key([])),
        (errors.NotAllColumnsInPrimaryKeyArePresent, key(["id", "none"])),
        (errors.InvalidViewPrimaryKeyColumnType, key(["weight"])),
        (errors.InvalidViewPrimaryKeyDeletionColumn, key(["id"], deletionColumn="text")),
        (errors.ViewPrimaryKeyDeletionColumnNotInDatasetSchema,
         key(["id"], deletionColumn="none")),
    ]:
        with pytest.raises(error):
            make_view(foundry, views, inputs, primary_key=wanted)
    with pytest.raises(errors.ViewPrimaryKeyRequiresBackingDatasets):
        make_view(foundry, views, [], primary_key=key(["id"]))


def test_what_a_view_can_be_made_of(foundry, views, inputs):
    view = make_view(foundry, views, inputs)
    for wrong in (f"ri.foundry.main.dataset.{uuid.uuid4()}", view.dataset_rid):
        with pytest.raises(errors.InvalidViewBackingDataset):
            make_view(foundry, views, [wrong])
    me = foundry.client.admin.User.get_current().id
    space = next(iter(foundry.client.filesystem.Space.list())).rid
    other = foundry.client.filesystem.Project.create(
        display_name=f"p {uuid.uuid4()}", space_rid=space, default_roles=[], organization_rids=[],
        role_grants={"compass:manage": [{"principalId": me, "principalType": "USER"}]})
    foreign = foundry.make_dataset(parent=other.rid).rid
    with pytest.raises(errors.InputBackingDatasetNotInOutputViewProject) as refused:
        make_view(foundry, views, [foreign])
    assert refused.value.parameters["invalidBackingDatasets"] == [foreign]
    foundry.client.filesystem.Project.Reference.add(
        foundry.project, resources=[{"type": "filesystem", "resourceRid": foreign}])
    make_view(foundry, views, [foreign])
    with pytest.raises(errors.ViewNotFound):
        views.get(inputs[0])
    with pytest.raises(errors.ViewNotFound):
        views.get(view.dataset_rid, branch="none")


def test_a_view_has_no_files(foundry, views, inputs):
    view = make_view(foundry, views, inputs)
    datasets = foundry.client.datasets.Dataset
    for call in (lambda: datasets.File.upload(view.dataset_rid, "a", b""),
                 lambda: datasets.Transaction.create(view.dataset_rid, transaction_type="APPEND")):
        with pytest.raises(foundry_sdk.BadRequestError) as refused:
            call()
        assert refused.value.name == "DatasetIsView"


def test_views_on_branches(foundry, views, inputs):
    first, second = inputs
    foundry.client.datasets.Dataset.Branch.create(first, name="b")
    fill(foundry, first, [(7, "on b", 1)], branch_name="b")
    view = views.create(view_name=f"view {uuid.uuid4()}", parent_folder_rid=foundry.project,
                        branch="b", backing_datasets=[backing(first), backing(second)])
    assert view.branch == "b"
    assert read(foundry.client, view.dataset_rid, branch_name="b") == [
        (2, "new"), (3, "new"), (7, "on b")]
    fixed = make_view(foundry, views, [])
    views.add_backing_datasets(fixed.dataset_rid, backing_datasets=[backing(first, branch="b")])
    assert read(foundry.client, fixed.dataset_rid) == [(7, "on b")]


def test_a_reader_needs_the_datasets_too(foundry, views, inputs):
    view = make_view(foundry, views, inputs)
    user, client, _ = foundry.make_user()
    with pytest.raises(errors.ViewNotFound):
        client.datasets.View.get(view.dataset_rid)
    roles = foundry.client.filesystem.Resource.Role
    viewer = [{"roleId": "compass:view",
               "resourceRolePrincipal": {"type": "principalIdOnly", "principalId": user}}]
    roles.add(view.dataset_rid, roles=viewer)
    assert client.datasets.View.get(view.dataset_rid).dataset_rid == view.dataset_rid
    with pytest.raises(errors.ReadTableDatasetPermissionDenied):
        read(client, view.dataset_rid)
    with pytest.raises(errors.AddBackingDatasetsPermissionDenied):
        client.datasets.View.add_backing_datasets(view.dataset_rid, backing_datasets=[])
    for rid in inputs:
        roles.add(rid, roles=viewer)
    assert len(read(client, view.dataset_rid)) == 4


def finish(queries, status):
    while status.type == "running":
        time.sleep(0.05)
        status = queries.get_status(status.query_id)
    return status


def table_of(answer):
    return pa.ipc.open_stream(pa.py_buffer(bytes(answer))).read_all()


def test_sql_queries(foundry, inputs):
    queries = foundry.client.sql_queries.SqlQuery
    first, second = inputs
    status = finish(queries, queries.execute(
        query=f"SELECT a.id, b.text FROM `{first}` a JOIN `{second}` b ON a.id = b.id"))
    assert status.type == "succeeded"
    for _ in range(2):
        assert table_of(queries.get_results(status.query_id)).to_pylist() == [
            {"id": 2, "text": "new"}]
    assert queries.cancel(status.query_id) is None
    name = foundry.client.datasets.Dataset.get(first).name
    path = finish(queries, queries.execute(
        query=f"SELECT count(*) AS n FROM `/Default/default/{name}`", serialization_format="CSV"))
    assert bytes(queries.get_results(path.query_id)).decode().split() == ["n", "2"]
    foundry.client.datasets.Dataset.Branch.create(first, name="b")
    fill(foundry, first, [(7, "on b", 1)], branch_name="b")
    branch = finish(queries, queries.execute(
        query=f"SELECT text FROM `{first}`", fallback_branch_ids=["none", "b"]))
    assert table_of(queries.get_results(branch.query_id)).to_pylist() == [{"text": "on b"}]


def test_sql_queries_that_fail(foundry, inputs):
    queries = foundry.client.sql_queries.SqlQuery
    with pytest.raises(sql_errors.QueryParseError) as wrong:
        queries.execute(query="SELEC 1")
    assert wrong.value.parameters["errorMessage"]
    for query in ("DELETE FROM x", "SELECT 1; SELECT 2", "SELECT `open"):
        with pytest.raises(foundry_sdk.BadRequestError):
            queries.execute(query=query)
    with pytest.raises(foundry_sdk.PermissionDeniedError):
        queries.execute(query="SELECT * FROM read_csv('/etc/passwd')")
    with pytest.raises(sql_errors.QueryFailed):
        queries.execute(query="SELECT * FROM `ri.foundry.main.dataset.none`")
    with pytest.raises(sql_errors.QueryParseError):
        queries.execute(query=f"SELECT CAST(text AS INTEGER) AS n FROM `{inputs[0]}`")
    _, stranger, _ = foundry.make_user()
    with pytest.raises(sql_errors.QueryFailed):
        stranger.sql_queries.SqlQuery.execute(query=f"SELECT * FROM `{inputs[0]}`")
    mine = finish(queries, queries.execute(query="SELECT 1 AS one"))
    for call in (stranger.sql_queries.SqlQuery.get_status,
                 stranger.sql_queries.SqlQuery.get_results,
                 stranger.sql_queries.SqlQuery.cancel):
        with pytest.raises(foundry_sdk.NotFoundError):
            call(mine.query_id)


def test_a_query_is_canceled(foundry):
    queries = foundry.client.sql_queries.SqlQuery
    status = queries.execute(query=(
        "SELECT count(*) AS n FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = 3"))
    assert status.type == "running"
    with pytest.raises(foundry_sdk.BadRequestError) as early:
        queries.get_results(status.query_id)
    assert early.value.name == "QueryRunning"
    queries.cancel(status.query_id)
    assert queries.get_status(status.query_id).type == "canceled"
    with pytest.raises(sql_errors.QueryCanceled):
        queries.get_results(status.query_id)


def test_version_one(foundry):
    old = foundry_sdk.v1.FoundryClient(
        auth=UserTokenAuth(foundry.token), hostname=foundry.host, config=Config(scheme="http"))
    datasets = old.datasets.Dataset
    made = datasets.create(name=f"old {uuid.uuid4()}", parent_folder_rid=foundry.project)
    assert datasets.get(made.rid) == made
    assert [b.branch_id for b in datasets.Branch.list(made.rid)] == ["master"]
    transaction = datasets.Transaction.create(
        made.rid, transaction_type="APPEND", branch_id="master")
    file = datasets.File.upload(made.rid, b"x", file_path="a/ü b", transaction_rid=transaction.rid)
    assert file.path == "a/ü b"
    assert datasets.Transaction.commit(made.rid, transaction.rid).status == "COMMITTED"
    branch = datasets.Branch.create(made.rid, branch_id="b/1", transaction_rid=transaction.rid)
    assert datasets.Branch.get(made.rid, "b/1") == branch
    assert [f.path for f in datasets.File.list(made.rid, branch_id="b/1")] == ["a/ü b"]
    assert datasets.File.get(made.rid, "a/ü b").transaction_rid == transaction.rid
    assert bytes(datasets.File.read(made.rid, "a/ü b", branch_id="b/1")) == b"x"
    assert datasets.get_schema(made.rid, branch_id="master", preview=True) is None
    schema = {"fieldSchemaList": [{"type": "STRING", "name": "a", "nullable": True,
                                   "customMetadata": {}}],
              "dataFrameReaderClass": "com.palantir.foundry.spark.input.ParquetDataFrameReader",
              "customMetadata": {"format": "parquet", "unknown": [1]}}
    datasets.replace_schema(made.rid, schema, branch_id="master", preview=True)
    assert datasets.get_schema(made.rid, branch_id="master", preview=True) == schema
    datasets.Branch.delete(made.rid, "b/1")
    with pytest.raises(foundry_sdk.NotFoundError) as gone:
        datasets.Branch.get(made.rid, "b/1")
    assert gone.value.name == "BranchNotFound"
    assert gone.value.parameters["branchId"] == "b/1"
    with pytest.raises(foundry_sdk.BadRequestError) as refused:
        datasets.Branch.create(made.rid, branch_id=" x")
    assert refused.value.name == "InvalidBranchId"
    datasets.File.delete(made.rid, "a/ü b", branch_id="master")
    assert list(datasets.File.list(made.rid)) == []
