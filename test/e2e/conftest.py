import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from server import Server  # noqa: E402


@pytest.fixture
def server(tmp_path):
    with Server(tmp_path / "home") as running:
        yield running


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """A Kafka broker for the tests of one file, each of which has topics of its own."""
    from kafka_broker import Broker

    with Broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running
