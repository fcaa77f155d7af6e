#!/usr/bin/env python3
"""Installs the servers that tests talk to, once per machine, and says where they are.

    services.py NAME…    install each, print the path of its program, one a line

Names: versitygw, seaweedfs, kfake, kafka (a directory, see fetch_kafka.py). Each is pinned: the
wheels by sha256 (fetch_deps.py), what is built from Go sources by the go.sum beside its go.mod,
the jars by checksums.txt beside their pom.xml.
"""

import fcntl
import hashlib
import os
import pathlib
import subprocess
import sys

import fetch_deps
import fetch_kafka

TOOLS = pathlib.Path(__file__).resolve().parent


def weed() -> pathlib.Path:
    program = fetch_deps.fetch("seaweedfs") / "bin" / "weed"
    program.chmod(0o755)
    return program


def go_program(folder: str, package: str) -> pathlib.Path:
    """Builds `package`, ours or another's, with the modules that tools/<folder>/go.sum pins."""
    source = TOOLS / folder
    files = ["go.mod", "go.sum", *sorted(path.name for path in source.glob("*.go"))]
    pins = b"".join((source / name).read_bytes() for name in files)
    toolchain = fetch_deps.archives_of("go")[0]
    digest = hashlib.sha256(pins + toolchain.version.encode()).hexdigest()[:10]
    root = fetch_deps.cache_root()
    home = root / f"{folder}-{digest}"
    program = home / folder
    if program.exists():
        return program
    home.mkdir(parents=True, exist_ok=True)
    with open(root / f".{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if program.exists():
            return program
        go = fetch_deps.fetch("go")
        for binary in [*(go / "bin").iterdir(), *go.glob("pkg/tool/*/*")]:
            binary.chmod(0o755)
        print(f"building {folder}", file=sys.stderr)
        environment = dict(os.environ, GOROOT=str(go), GOTOOLCHAIN="local", CGO_ENABLED="0")
        environment |= {"GOPATH": str(root / "gopath"), "GOCACHE": str(root / "gocache")}
        environment["GOFLAGS"] = "-mod=readonly -modcacherw -buildvcs=false -trimpath"
        staging = home / f".{folder}-{os.getpid()}"
        command = [str(go / "bin" / "go"), "build", "-ldflags=-s -w", "-o", str(staging), package]
        done = subprocess.run(command, cwd=source, env=environment, stdin=subprocess.DEVNULL,
                              stdout=sys.stderr.fileno())
        if done.returncode != 0:
            raise fetch_deps.FetchError(f"building {folder} failed: {' '.join(command)}")
        os.rename(staging, program)
    return program


SERVICES = {
    "versitygw": lambda: go_program("versitygw", "github.com/versity/versitygw/cmd/versitygw"),
    "seaweedfs": weed,
    "kfake": lambda: go_program("kfake", "."),
    "kafka": fetch_kafka.fetch,
}


def main(arguments: list[str]) -> int:
    if not arguments or any(name not in SERVICES for name in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        for name in arguments:
            print(SERVICES[name](), flush=True)
    except fetch_deps.FetchError as error:
        print(f"services: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
