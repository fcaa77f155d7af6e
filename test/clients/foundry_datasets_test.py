"""Datasets, branches, transactions, files and schemas through the vendor's Python library."""

import threading
import uuid

import foundry_sdk
import pytest
from foundry_sdk.v2.core import errors as core_errors
from foundry_sdk.v2.core import models as core
from foundry_sdk.v2.datasets import errors
from foundry_sdk.v2.filesystem import errors as filesystem_errors

from foundry_server import foundry  # noqa: F401: a fixture

NAMES = [
    "plain", "nested/a/b", "with space", "%20", "a%2Fb", "+", "&", "#", "ü", "a[1].csv", "*.csv",
    "?", "{x}", "weird\\nfile", 'a"b', "new\nline", "tab\t", "content", "upload", "x/content",
    "a\u0308.csv", "\u00e4.csv", "a:merge", "k" * 700, "a/b", "a", "a.csv", "😀",
]


@pytest.fixture
def rid(foundry):
    return foundry.make_dataset().rid


@pytest.fixture
def files(foundry):
    return foundry.client.datasets.Dataset.File


def start(foundry, rid, kind, branch="master"):
    return foundry.client.datasets.Dataset.Transaction.create(
        rid, transaction_type=kind, branch_name=branch)


def paths(foundry, rid, **selection):
    return [file.path for file in foundry.client.datasets.Dataset.File.list(rid, **selection)]


def test_a_dataset_is_made_and_found(foundry):
    made = foundry.make_dataset("é 😀 orders")
    assert made.name == "é 😀 orders"
    assert made.parent_folder_rid == foundry.project
    assert foundry.client.datasets.Dataset.get(made.rid) == made
    assert [b.name for b in foundry.client.datasets.Dataset.Branch.list(made.rid)] == ["master"]
    with pytest.raises(filesystem_errors.ResourceNameAlreadyExists) as taken:
        foundry.make_dataset("é 😀 orders")
    assert taken.value.parameters["displayName"] == "é 😀 orders"
    for name in ("", ".", "..", "a/b", "x" * 701):
        with pytest.raises(filesystem_errors.InvalidDisplayName):
            foundry.client.datasets.Dataset.create(name=name, parent_folder_rid=foundry.project)
    nowhere = f"ri.compass.main.folder.{uuid.uuid4()}"
    with pytest.raises(foundry_sdk.NotFoundError) as missing:
        foundry.client.datasets.Dataset.create(name="x", parent_folder_rid=nowhere)
    assert missing.value.name == "FolderNotFound"


def test_an_unknown_dataset_is_not_found(foundry):
    datasets = foundry.client.datasets.Dataset
    nothing = f"ri.foundry.main.dataset.{uuid.uuid4()}"
    calls = [
        lambda: datasets.get(nothing),
        lambda: datasets.get_schema(nothing),
        lambda: list(datasets.get_schedules(nothing)),
        lambda: datasets.get_health_checks(nothing, preview=True),
        lambda: datasets.get_health_check_reports(nothing, preview=True),
        lambda: list(datasets.transactions(nothing, preview=True)),
        lambda: datasets.Branch.get(nothing, "master"),
        lambda: list(datasets.Branch.list(nothing)),
        lambda: datasets.Branch.create(nothing, name="b"),
        lambda: datasets.Branch.delete(nothing, "b"),
        lambda: datasets.Transaction.create(nothing, transaction_type="APPEND"),
        lambda: list(datasets.File.list(nothing)),
        lambda: datasets.File.get(nothing, "a"),
        lambda: datasets.File.content(nothing, "a"),
        lambda: datasets.File.upload(nothing, "a", b""),
        lambda: datasets.File.delete(nothing, "a"),
    ]
    for call in calls:
        with pytest.raises(errors.DatasetNotFound) as missing:
            call()
        assert missing.value.parameters["datasetRid"] == nothing


def test_the_worked_example_of_views(foundry, rid, files):
    for kind, uploads, deletes in [
        ("SNAPSHOT", {"A": b"a", "B": b"b"}, []),
        ("APPEND", {"C": b"c"}, []),
        ("UPDATE", {"A": b"A'"}, []),
        ("DELETE", {}, ["B"]),
    ]:
        transaction = start(foundry, rid, kind)
        assert transaction.status == "OPEN"
        for path, body in uploads.items():
            files.upload(rid, path, body, transaction_rid=transaction.rid)
        for path in deletes:
            files.delete(rid, path, transaction_rid=transaction.rid)
        done = foundry.client.datasets.Dataset.Transaction.commit(rid, transaction.rid)
        assert done.status == "COMMITTED" and done.closed_time >= done.created_time
    assert paths(foundry, rid) == ["A", "C"]
    assert files.content(rid, "A") == b"A'"
    before = done.rid
    files.upload(rid, "D", b"d", transaction_type="SNAPSHOT")
    assert paths(foundry, rid) == ["D"]
    assert paths(foundry, rid, end_transaction_rid=before) == ["A", "C"]
    history = list(foundry.client.datasets.Dataset.transactions(rid, preview=True))
    assert [t.transaction_type for t in history] == [
        "SNAPSHOT", "DELETE", "UPDATE", "APPEND", "SNAPSHOT"]
    second = history[3].rid
    assert paths(foundry, rid, start_transaction_rid=second, end_transaction_rid=before) == [
        "A", "C"]
    assert paths(foundry, rid, start_transaction_rid=second, end_transaction_rid=second) == ["C"]
    with pytest.raises(errors.FileNotFoundOnTransactionRange):
        files.get(rid, "B", end_transaction_rid=before)
    with pytest.raises(errors.FileNotFoundOnBranch):
        files.content(rid, "B")


def test_names_round_trip_byte_for_byte(foundry, rid, files):
    transaction = start(foundry, rid, "APPEND")
    for name in NAMES:
        file = files.upload(rid, name, name.encode(), transaction_rid=transaction.rid)
        assert file.path == name and file.transaction_rid == transaction.rid
        assert file.size_bytes == len(name.encode())
    assert paths(foundry, rid) == []
    foundry.client.datasets.Dataset.Transaction.commit(rid, transaction.rid)
    assert paths(foundry, rid) == sorted(NAMES, key=str.encode)
    assert paths(foundry, rid, page_size=3) == sorted(NAMES, key=str.encode)
    assert paths(foundry, rid, path_prefix="a") == ["a"]
    assert paths(foundry, rid, path_prefix="a/") == ["a/b"]
    for name in NAMES:
        assert files.get(rid, name).path == name
        assert files.content(rid, name) == name.encode()
        assert files.delete(rid, name) is None
        with pytest.raises(errors.FileNotFoundOnBranch) as gone:
            files.get(rid, name)
        assert gone.value.parameters["path"] == name
    assert paths(foundry, rid) == []


def test_bad_names_are_refused(foundry, rid, files):
    for name in ("/a", "a/", "a//b", "a/../b", "./a", "a\0b", "x" * 4097):
        with pytest.raises(core_errors.InvalidFilePath):
            files.upload(rid, name, b"x")
    for dots in (".", ".."):
        # The library resolves them before sending: a trailing slash must never mean the parent.
        with pytest.raises(foundry_sdk.PalantirRPCException):
            foundry.client.datasets.Dataset.Branch.delete(rid, dots)
    assert foundry.client.datasets.Dataset.get(rid).rid == rid


def test_an_append_that_clashes_stays_open(foundry, rid, files):
    files.upload(rid, "a", b"1")
    transaction = start(foundry, rid, "APPEND")
    files.upload(rid, "a", b"2", transaction_rid=transaction.rid)
    with pytest.raises(foundry_sdk.ConflictError) as clash:
        foundry.client.datasets.Dataset.Transaction.commit(rid, transaction.rid)
    assert clash.value.name == "AppendOverwritesExistingFiles"
    assert clash.value.parameters["paths"] == ["a"]
    assert foundry.client.datasets.Dataset.Transaction.get(rid, transaction.rid).status == "OPEN"
    assert files.content(rid, "a") == b"1"
    aborted = foundry.client.datasets.Dataset.Transaction.abort(rid, transaction.rid)
    assert aborted.status == "ABORTED"
    with pytest.raises(foundry_sdk.ConflictError):
        files.upload(rid, "a", b"3", transaction_type="APPEND")
    assert start(foundry, rid, "UPDATE").status == "OPEN"  # Nothing was left open.


def test_transactions_close_once(foundry, rid, files):
    transactions = foundry.client.datasets.Dataset.Transaction
    transaction = start(foundry, rid, "UPDATE")
    with pytest.raises(errors.OpenTransactionAlreadyExists) as second:
        start(foundry, rid, "APPEND")
    assert second.value.parameters == {
        "datasetRid": rid, "branchName": "master", "message": second.value.parameters["message"]}
    with pytest.raises(errors.OpenTransactionAlreadyExists):
        files.upload(rid, "a", b"")
    transactions.commit(rid, transaction.rid)
    for call in (transactions.commit, transactions.abort):
        with pytest.raises(errors.TransactionNotOpen) as closed:
            call(rid, transaction.rid)
        assert closed.value.parameters["transactionStatus"] == "COMMITTED"
    with pytest.raises(errors.TransactionNotOpen):
        files.upload(rid, "a", b"", transaction_rid=transaction.rid)
    unknown = f"ri.foundry.main.transaction.{uuid.uuid4()}"
    for call in (transactions.get, transactions.commit, transactions.abort):
        with pytest.raises(errors.TransactionNotFound):
            call(rid, unknown)
    assert transactions.build(rid, transaction.rid, preview=True) is None
    assert transactions.job(rid, transaction.rid, preview=True) is None


def test_the_type_of_a_transaction_is_kept_to(foundry, rid, files):
    files.upload(rid, "a", b"1")
    deleting = start(foundry, rid, "DELETE")
    with pytest.raises(foundry_sdk.BadRequestError) as refused:
        files.upload(rid, "b", b"", transaction_rid=deleting.rid)
    assert refused.value.name == "InvalidTransactionType"
    with pytest.raises(errors.FileNotFoundOnBranch):
        files.delete(rid, "none", transaction_rid=deleting.rid)
    foundry.client.datasets.Dataset.Transaction.abort(rid, deleting.rid)
    writing = start(foundry, rid, "UPDATE")
    with pytest.raises(errors.InvalidTransactionType):
        files.delete(rid, "a", transaction_rid=writing.rid)
    with pytest.raises(core_errors.InvalidParameterCombination) as both:
        files.upload(rid, "c", b"", transaction_rid=writing.rid, branch_name="master")
    assert both.value.parameters["providedParameters"] == ["transactionRid", "branchName"]


def test_branches(foundry, rid, files):
    branches = foundry.client.datasets.Dataset.Branch
    first = files.upload(rid, "a", b"1").transaction_rid
    made = branches.create(rid, name="feature/ü +1", transaction_rid=first)
    assert (made.name, made.transaction_rid) == ("feature/ü +1", first)
    assert branches.get(rid, "feature/ü +1") == made
    assert branches.create(rid, name="empty").transaction_rid is None
    files.upload(rid, "b", b"2", branch_name="feature/ü +1")
    assert paths(foundry, rid, branch_name="feature/ü +1") == ["a", "b"]
    assert paths(foundry, rid) == ["a"]
    assert paths(foundry, rid, branch_name="empty") == []
    assert [b.name for b in branches.list(rid, page_size=1)] == [
        "empty", "feature/ü +1", "master"]
    head = branches.get(rid, "feature/ü +1").transaction_rid
    history = branches.transactions(rid, "feature/ü +1", preview=True)
    assert [t.rid for t in history] == [head, first]
    with pytest.raises(errors.BranchAlreadyExists):
        branches.create(rid, name="empty")
    for name in ("", " a", "a ", "x" * 257, "a\nb", first, str(uuid.uuid4())):
        with pytest.raises(errors.InvalidBranchName):
            branches.create(rid, name=name)
    assert branches.delete(rid, "feature/ü +1") is None
    with pytest.raises(errors.BranchNotFound):
        branches.get(rid, "feature/ü +1")
    assert paths(foundry, rid, end_transaction_rid=head) == ["a", "b"]
    opened = start(foundry, rid, "UPDATE")
    with pytest.raises(errors.TransactionNotCommitted) as early:
        branches.create(rid, name="early", transaction_rid=opened.rid)
    assert early.value.parameters["transactionStatus"] == "OPEN"


def test_pages_and_their_tokens(foundry, rid, files):
    transaction = start(foundry, rid, "UPDATE")
    for i in range(25):
        files.upload(rid, f"f{i:02}", b"", transaction_rid=transaction.rid)
    end = foundry.client.datasets.Dataset.Transaction.commit(rid, transaction.rid).rid
    page = files.list(rid, page_size=10)
    first = [next(page).path for _ in range(10)]
    files.upload(rid, "f00a", b"")  # The token pins the view that the first page showed.
    assert first + [file.path for file in page] == [f"f{i:02}" for i in range(25)]
    assert len(paths(foundry, rid, page_size=7)) == 26
    assert len(paths(foundry, rid, end_transaction_rid=end, page_size=7)) == 25
    for size in (0, -1):
        with pytest.raises(core_errors.InvalidPageSize) as refused:
            list(files.list(rid, page_size=size))
        assert refused.value.parameters["pageSize"] == size
    with pytest.raises(foundry_sdk.BadRequestError) as refused:
        list(files.list(rid, page_token="nonsense"))
    assert refused.value.name == "InvalidPageToken"
    for _ in range(23):
        files.upload(rid, "again", b"")
    branches = foundry.client.datasets.Dataset.Branch
    assert len(list(branches.transactions(rid, "master", preview=True))) == 25
    raw = foundry.native(
        "GET", f"/api/v2/datasets/{rid}/branches/master/transactions?preview=true").json()
    assert len(raw["data"]) == 20 and raw["nextPageToken"]


def test_content_in_ranges(foundry, rid, files):
    body = bytes(range(256)) * 4096
    files.upload(rid, "big", body)
    assert files.content(rid, "big") == body
    path = f"/api/v2/datasets/{rid}/files/big/content"
    for asked, first, last in [("0-9", 0, 9), ("100-", 100, len(body) - 1),
                               ("-5", len(body) - 5, len(body) - 1)]:
        part = foundry.native("GET", path, headers={"Range": f"bytes={asked}"})
        assert part.status_code == 206
        assert part.content == body[first:last + 1]
        assert part.headers["Content-Range"] == f"bytes {first}-{last}/{len(body)}"
    beyond = foundry.native("GET", path, headers={"Range": f"bytes={len(body)}-"})
    assert beyond.status_code == 416
    files.upload(rid, "empty", b"")
    assert files.content(rid, "empty") == b""
    assert files.get(rid, "empty").size_bytes == 0


def test_schemas(foundry, rid, files):
    datasets = foundry.client.datasets.Dataset
    schema = core.DatasetSchema(field_schema_list=[
        core.DatasetFieldSchema(type="LONG", name="id", nullable=False),
        core.DatasetFieldSchema(type="DECIMAL", name="amount", nullable=True, precision=38,
                                scale=18),
        core.DatasetFieldSchema(
            type="ARRAY", name="tags", nullable=True,
            array_subtype=core.DatasetFieldSchema(type="STRING", nullable=True)),
        core.DatasetFieldSchema(
            type="STRUCT", name="é", nullable=True, custom_metadata={"k": [1, {"a": None}]},
            sub_schemas=[core.DatasetFieldSchema(type="DATE", name="d", nullable=True)]),
    ])
    with pytest.raises(errors.DatasetViewNotFound):
        datasets.put_schema(rid, schema=schema)
    first = files.upload(rid, "a", b"").transaction_rid
    with pytest.raises(errors.SchemaNotFound):
        datasets.get_schema(rid)
    put = datasets.put_schema(rid, schema=schema)
    assert (put.branch_name, put.end_transaction_rid) == ("master", first)
    assert put.schema_ == schema
    files.upload(rid, "b", b"", transaction_type="APPEND")
    assert datasets.get_schema(rid).schema_ == schema
    assert datasets.get_schema(rid).version_id == put.version_id
    narrow = core.DatasetSchema(field_schema_list=[
        core.DatasetFieldSchema(type="LONG", name="id", nullable=True)])
    second = datasets.put_schema(rid, schema=narrow, dataframe_reader="CSV")
    assert second.version_id != put.version_id
    assert datasets.get_schema(rid).schema_.field_schema_list == narrow.field_schema_list
    assert datasets.get_schema(rid, version_id=put.version_id).schema_ == schema
    assert datasets.get_schema(rid, end_transaction_rid=first).schema_ == schema
    files.upload(rid, "c", b"", transaction_type="SNAPSHOT")
    with pytest.raises(errors.SchemaNotFound):
        datasets.get_schema(rid)
    nothing = f"ri.foundry.main.dataset.{uuid.uuid4()}"
    batch = datasets.get_schema_batch([
        {"datasetRid": rid, "endTransactionRid": first}, {"datasetRid": nothing}])
    assert list(batch.data) == [rid]
    assert batch.data[rid].schema_ == schema
    for bad in [
        {"type": "DECIMAL", "name": "d", "nullable": True},
        {"type": "DECIMAL", "name": "d", "nullable": True, "precision": 39, "scale": 0},
        {"type": "ARRAY", "name": "d", "nullable": True},
        {"type": "MAP", "name": "d", "nullable": True},
        {"type": "STRUCT", "name": "d", "nullable": True},
    ]:
        with pytest.raises(core_errors.InvalidSchema) as refused:
            datasets.put_schema(rid, schema={"fieldSchemaList": [bad]})
        assert {"errorType", "message"} <= set(refused.value.parameters)
    twice = {"type": "LONG", "name": "d", "nullable": True}
    with pytest.raises(core_errors.InvalidSchema):
        datasets.put_schema(rid, schema={"fieldSchemaList": [twice, twice]})


def test_what_runs_elsewhere_is_empty(foundry, rid):
    datasets = foundry.client.datasets.Dataset
    assert list(datasets.get_schedules(rid)) == []
    assert datasets.get_health_checks(rid, preview=True).data == []
    assert datasets.get_health_check_reports(rid, preview=True).data == {}
    jobs = datasets.jobs(rid, order_by=[{"sortType": "BY_STARTED_TIME",
                                         "sortDirection": "ASCENDING"}], preview=True)
    assert list(jobs.data) == []
    with pytest.raises(errors.BranchNotFound):
        list(datasets.get_schedules(rid, branch_name="none"))


def test_preview_must_be_asked_for(foundry, rid):
    for call in (
        lambda: list(foundry.client.datasets.Dataset.transactions(rid)),
        lambda: list(foundry.client.datasets.Dataset.Branch.transactions(rid, "master")),
        lambda: foundry.client.datasets.Dataset.get_health_checks(rid),
    ):
        with pytest.raises(foundry_sdk.BadRequestError) as refused:
            call()
        assert refused.value.name == "ApiFeaturePreviewUsageOnly"


def test_strangers_see_nothing_and_viewers_change_nothing(foundry, rid, files):
    files.upload(rid, "a", b"1")
    _, stranger, _ = foundry.make_user()
    with pytest.raises(errors.DatasetNotFound):
        stranger.datasets.Dataset.get(rid)
    with pytest.raises(errors.DatasetNotFound):
        stranger.datasets.Dataset.File.content(rid, "a")
    with pytest.raises(errors.DatasetNotFound):
        stranger.datasets.Dataset.File.upload(rid, "a", b"2")
    nobody = foundry.client_of("tarn_" + "0" * 64)
    with pytest.raises(foundry_sdk.UnauthorizedError):
        nobody.datasets.Dataset.get(rid)


def test_uploads_in_parallel(foundry, rid, files):
    transaction = start(foundry, rid, "APPEND")
    failures = []

    def upload(worker):
        try:
            for i in range(10):
                foundry.client_of(foundry.token).datasets.Dataset.File.upload(
                    rid, f"{worker}/{i}", b"x" * 10_000, transaction_rid=transaction.rid)
        except Exception as failure:  # noqa: BLE001: a thread must not swallow it
            failures.append(failure)

    workers = [threading.Thread(target=upload, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
    foundry.client.datasets.Dataset.Transaction.commit(rid, transaction.rid)
    assert len(paths(foundry, rid)) == 80
