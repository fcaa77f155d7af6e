#!/usr/bin/env python3
"""Resolves tools/*-requirements.in into tools/*-requirements.txt.

Asks pip what it would install here and writes each version with the sha256 of that very file. Run
it with Debian 12's Python on x86_64 after changing an .in file:

    lock_python.py [python|client|iceberg]…
"""

import json
import pathlib
import subprocess
import sys

TOOLS = pathlib.Path(__file__).resolve().parent
HEADER = "# Written by tools/lock_python.py from {}-requirements.in; do not edit.\n"


def lock(name: str, report: dict) -> str:
    """Formats pip's installation report as a requirements file with hashes."""
    lines = []
    for item in report["install"]:
        package = item["metadata"]["name"].lower().replace("_", "-")
        version = item["metadata"]["version"]
        sha256 = item["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{package}=={version} --hash=sha256:{sha256}\n")
    return HEADER.format(name) + "".join(sorted(lines))


def resolve(name: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--report", "-"]
    command += ["--disable-pip-version-check", "--ignore-installed", "--only-binary=:all:"]
    command += ["--requirement", str(TOOLS / f"{name}-requirements.in")]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    (TOOLS / f"{name}-requirements.txt").write_text(lock(name, json.loads(done.stdout)))


def main(names: list[str]) -> int:
    for name in names or ["python", "client", "iceberg"]:
        resolve(name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
