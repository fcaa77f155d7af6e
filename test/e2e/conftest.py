import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from server import Server  # noqa: E402


@pytest.fixture
def server(tmp_path):
    with Server(tmp_path / "home") as running:
        yield running
