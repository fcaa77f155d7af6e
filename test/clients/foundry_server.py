"""One server for the tests of a file, and the vendor's client library pointed at it.

Everything goes over loopback, in plain http: `Config(scheme="http")` is all that the unmodified
library needs.
"""

import pathlib
import sys
import uuid

import pytest
import requests

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from foundry_sdk import Config, FoundryClient, UserTokenAuth  # noqa: E402
from server import Server  # noqa: E402


class Foundry:
    """A running server, its administrator's client, and shorthands for tests."""

    def __init__(self, server):
        self.server = server
        self.host = server.url.removeprefix("http://")
        self.token = server.token()
        self.client = self.client_of(self.token)
        self.project = self.native("GET", "/tarn/v1/resources?path=default").json()["rid"]

    def client_of(self, token):
        return FoundryClient(
            auth=UserTokenAuth(token), hostname=self.host, config=Config(scheme="http"))

    def native(self, method, path, token=None, **options):
        """One call without the library, for what it cannot send."""
        headers = {"Authorization": f"Bearer {token or self.token}", **options.pop("headers", {})}
        return requests.request(
            method, self.server.url + path, headers=headers, timeout=60, **options)

    def make_user(self, name="user"):
        """A new user without any grant: (id, its client, its token)."""
        name = f"{name}-{uuid.uuid4()}"
        user = self.native("POST", "/tarn/v1/users", json={"name": name}).json()
        token = self.make_token(name)
        return user["id"], self.client_of(token), token

    def make_token(self, user, **options):
        answer = self.native("POST", "/tarn/v1/tokens", json={"user": user, **options})
        assert answer.status_code == 200, answer.text
        return answer.json()["token"]

    def make_dataset(self, name=None, parent=None):
        name = name or f"dataset {uuid.uuid4()}"
        return self.client.datasets.Dataset.create(
            name=name, parent_folder_rid=parent or self.project)


@pytest.fixture(scope="module")
def foundry(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("foundry") / "home") as server:
        yield Foundry(server)
