"""An S3 server with one bucket, for tests that keep a warehouse in it."""

import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from server import REPOSITORY

ACCESS_KEY = "test"
SECRET_KEY = "testtest"
BUCKET = "lake"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class BucketServer:
    """Runs versitygw over a folder: buckets are folders in it, objects are files."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        (self.folder / BUCKET).mkdir(parents=True)
        self.endpoint = f"http://127.0.0.1:{free_port()}"
        self.process = None

    def __enter__(self):
        script = REPOSITORY / "tools" / "services.py"
        done = subprocess.run([sys.executable, script, "versitygw"], check=True,
                              stdout=subprocess.PIPE, text=True)
        self.log = open(self.folder.parent / "versitygw.log", "ab")
        self.process = subprocess.Popen(
            [done.stdout.strip(), "--port", self.endpoint.removeprefix("http://"),
             "--access", ACCESS_KEY, "--secret", SECRET_KEY, "--region", "us-east-1", "--quiet",
             "posix", str(self.folder)],
            stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(self.endpoint, timeout=2)
                return self
            except urllib.error.HTTPError:
                return self
            except OSError:
                time.sleep(0.05)
        self.__exit__()
        raise RuntimeError("versitygw did not start")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def configuration(self):
        """What a server's tarn.toml says to keep its warehouse here."""
        return f"""\
warehouse = "s3://{BUCKET}/warehouse"

[stores.lake]
uri = "s3://{BUCKET}"
endpoint = "{self.endpoint}"
access_key_env = "LAKE_KEY"
secret_key_env = "LAKE_SECRET"
"""

    def environment(self):
        """The secrets that the configuration names, and none of this machine's."""
        return {"LAKE_KEY": ACCESS_KEY, "LAKE_SECRET": SECRET_KEY,
                "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": os.devnull}

    def properties(self):
        """What an Iceberg client needs to read the files itself."""
        return {"s3.endpoint": self.endpoint, "s3.access-key-id": ACCESS_KEY,
                "s3.secret-access-key": SECRET_KEY, "s3.region": "us-east-1"}

    def objects(self):
        """Names of all objects below the warehouse."""
        root = self.folder / BUCKET
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
