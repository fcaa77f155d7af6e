"""What the server refuses when it is asked for too much, as the vendor's library sees it."""

import foundry_sdk
import pytest
from foundry_sdk import Config, FoundryClient, UserTokenAuth

from foundry_server import Foundry
from server import Server


def test_a_caller_is_held_back(tmp_path):
    with Server(tmp_path / "home", {"TARN_REQUESTS_PER_MINUTE": "30"}) as server:
        host = server.url.removeprefix("http://")
        client = FoundryClient(
            auth=UserTokenAuth(server.token()), hostname=host,
            config=Config(scheme="http", propagate_qos="PROPAGATE_429_AND_503_TO_CALLER"))
        with pytest.raises(foundry_sdk.RateLimitError):
            for _ in range(60):
                client.admin.User.get_current()
        patient = FoundryClient(auth=UserTokenAuth(server.token()), hostname=host,
                                config=Config(scheme="http", backoff_slot_size_ms=2000))
        patient.admin.User.get_current()  # It tries again by itself.


def test_bodies_have_a_limit(tmp_path):
    with Server(tmp_path / "home") as server:
        foundry = Foundry(server)
        refused = foundry.native("POST", "/api/v2/datasets", data=b" " * (17 << 20))
        assert refused.status_code == 413
        assert refused.json()["errorName"] == "RequestEntityTooLarge"
        rid = foundry.make_dataset().rid
        files = foundry.client.datasets.Dataset.File
        body = b"x" * (20 << 20)
        assert files.upload(rid, "large", body).size_bytes == len(body)  # Files have none.
