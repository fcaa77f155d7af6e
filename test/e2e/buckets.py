"""S3 servers with one bucket, for tests that keep a warehouse in it."""

import json
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


class SessionServer:
    """Runs SeaweedFS, which also is a token service: keys for a while, for what a policy says."""

    ROLE = "arn:aws:iam::role/Vended"

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        (self.folder / "data").mkdir(parents=True)
        self.endpoint = f"http://127.0.0.1:{free_port()}"
        self.process = None

    def _configure(self):
        identity = {"name": "admin", "actions": ["Admin", "Read", "Write", "List", "Tagging"],
                    "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]}
        allow = {"Effect": "Allow", "Action": ["s3:*"], "Resource": ["*"]}
        trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["sts:AssumeRole"]}

        def document(statement):
            return {"Version": "2012-10-17", "Statement": [statement]}

        (self.folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
        (self.folder / "iam.json").write_text(json.dumps({
            "sts": {"tokenDuration": "1h", "maxSessionLength": "12h", "issuer": "tarn-test",
                    "signingKey": "YS1zaWduaW5nLWtleS1vZi10aGlydHktdHdvLWJ5dGVz"},
            "policy": {"defaultEffect": "Deny", "storeType": "memory"},
            "roleStore": {"storeType": "memory"},
            "policies": [{"name": "All", "document": document(allow)}],
            "roles": [{"roleName": "Vended", "roleArn": self.ROLE, "attachedPolicies": ["All"],
                       "trustPolicy": document(trust)}]}))

    def __enter__(self):
        script = REPOSITORY / "tools" / "services.py"
        done = subprocess.run([sys.executable, script, "seaweedfs"], check=True,
                              stdout=subprocess.PIPE, text=True)
        self._configure()
        command = [done.stdout.strip(), "server", f"-dir={self.folder / 'data'}", "-ip=127.0.0.1",
                   "-ip.bind=127.0.0.1", "-filer", "-s3", f"-s3.config={self.folder / 's3.json'}",
                   f"-s3.iam.config={self.folder / 'iam.json'}", "-volume.max=100",
                   "-master.volumeSizeLimitMB=64",
                   "-s3.port=" + self.endpoint.rpartition(":")[2]]
        for name in ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc",
                     "filer.port", "filer.port.grpc", "s3.port.grpc", "s3.port.iceberg"):
            command.append(f"-{name}={free_port()}")
        self.log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(
            command, stdout=self.log, stderr=self.log,
            env={**os.environ, "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"})
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self._make_bucket():
                return self
            time.sleep(0.2)
        self.__exit__()
        raise RuntimeError("SeaweedFS did not start:\n" + (self.folder / "log").read_text()[-2000:])

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def files(self, key=ACCESS_KEY, secret=SECRET_KEY, token=None):
        """The store through pyarrow, as somebody with these keys."""
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(
            access_key=key, secret_key=secret, session_token=token, region="us-east-1",
            endpoint_override=self.endpoint.removeprefix("http://"), scheme="http",
            allow_bucket_creation=True, check_directory_existence_before_creation=False)

    def _make_bucket(self):
        try:
            self.files().create_dir(BUCKET)
        except OSError:
            return False
        return True

    def configuration(self):
        return f"""\
warehouse = "s3://{BUCKET}/warehouse"

[stores.lake]
uri = "s3://{BUCKET}"
endpoint = "{self.endpoint}"
access_key_env = "LAKE_KEY"
secret_key_env = "LAKE_SECRET"
list_order = "folders"
vended_credentials = "sts"
sts_role = "{self.ROLE}"
"""

    environment = BucketServer.environment
