"""One server for the tests of a file, and Iceberg clients pointed at its catalog."""

import pathlib
import sys

import pytest
import requests

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from server import Server  # noqa: E402


class Iceberg:
    """A running server with its catalog."""

    def __init__(self, server):
        self.server = server
        self.uri = server.url + "/iceberg"
        self.token = server.token()

    def catalog(self, token=None, **properties):
        """PyIceberg's client."""
        from pyiceberg.catalog.rest import RestCatalog

        return RestCatalog(
            "tarn", uri=self.uri, token=token or self.token, **properties)

    def rest(self, method, path, token=None, **options):
        """One call without a client, for what none sends."""
        headers = {"Authorization": f"Bearer {token or self.token}", **options.pop("headers", {})}
        return requests.request(
            method, f"{self.uri}/v1{path}", headers=headers, timeout=60, **options)

    def native(self, method, path, **options):
        return requests.request(
            method, self.server.url + path, headers={"Authorization": f"Bearer {self.token}"},
            timeout=60, **options)

    def make_user(self, name):
        """A new user without any grant: (id, token)."""
        user = self.native("POST", "/tarn/v1/users", json={"name": name}).json()
        token = self.native("POST", "/tarn/v1/tokens", json={"user": name}).json()["token"]
        return user["id"], token


@pytest.fixture(scope="module")
def iceberg(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("iceberg") / "home") as server:
        yield Iceberg(server)
