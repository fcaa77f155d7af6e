"""A PostgreSQL server of the tests' own, on loopback, with a password and TLS."""

import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import time

PASSWORD = "hush-hush"


def programs():
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    assert found, "PostgreSQL is not installed: ./dev setup"
    return found[-1].parent


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Postgres:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.port = free_port()
        self.process = None

    def command(self, *words):
        # It refuses to run as root.
        return ["runuser", "-u", "postgres", "--", *words] if os.geteuid() == 0 else [*words]

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "password").write_text(PASSWORD)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-keyout", self.folder / "key",
                        "-out", self.folder / "certificate"], check=True, capture_output=True)
        os.chmod(self.folder / "key", 0o600)
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            for path in [self.folder, *self.folder.iterdir()]:
                os.chown(path, user.pw_uid, user.pw_gid)
            # Temporary folders are for their owner only.
            for parent in self.folder.parents:
                if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
                    parent.chmod(parent.stat().st_mode | 0o011)
        subprocess.run(self.command(
            programs() / "initdb", "-D", self.folder / "data", "-U", "tarn", "-A", "scram-sha-256",
            f"--pwfile={self.folder / 'password'}", "-E", "UTF8", "--locale=C.UTF-8", "-N"),
            check=True, capture_output=True)
        self.start()
        return self

    def start(self):
        self.process = subprocess.Popen(self.command(
            programs() / "postgres", "-D", self.folder / "data", "-p", str(self.port),
            "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self.folder}",
            "-c", "ssl=on", "-c", f"ssl_cert_file={self.folder / 'certificate'}",
            "-c", f"ssl_key_file={self.folder / 'key'}"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 60
        while subprocess.run([programs() / "pg_isready", "-q", "-h", "127.0.0.1", "-p",
                              str(self.port)]).returncode != 0:
            assert time.monotonic() < deadline, "PostgreSQL does not start"
            time.sleep(0.05)

    def crash(self):
        """As if by a power cut, but for what the operating system still writes."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGQUIT)
        self.process.wait(timeout=60)

    def run(self, sql):
        return subprocess.run(
            [programs() / "psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "tarn", "-d",
             "postgres", "-Atqc", sql], env={**os.environ, "PGPASSWORD": PASSWORD},
            capture_output=True, text=True, check=True).stdout.strip()

    def new_database(self, name):
        """Returns its URL, without the password."""
        self.run(f"CREATE DATABASE {name}")
        return f"postgresql://tarn@127.0.0.1:{self.port}/{name}?sslmode=require"

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.crash()
        shutil.rmtree(self.folder / "data", ignore_errors=True)
