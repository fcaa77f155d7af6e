"""The vendor's TypeScript clients: starts a server and runs foundry_osdk.mjs against it."""

import os
import pathlib
import subprocess

from foundry_server import foundry  # noqa: F401: a fixture

SCRIPT = pathlib.Path(__file__).with_name("foundry_osdk.mjs")


def test_the_typescript_clients(foundry):
    done = subprocess.run(
        ["node", str(SCRIPT)], capture_output=True, text=True, timeout=300,
        env={**os.environ, "TARN_URL": foundry.server.url, "TARN_TOKEN": foundry.token,
             "TARN_PROJECT": foundry.project})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout and done.stdout.count("ok ") >= 7
