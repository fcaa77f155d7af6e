#!/usr/bin/env python3
"""Resolves tools/python-requirements.in into tools/python-requirements.txt.

Asks pip what it would install here and writes each version with the sha256 of that very file. Run
it with Debian 12's Python on x86_64 after changing the .in file.
"""

import json
import pathlib
import subprocess
import sys

TOOLS = pathlib.Path(__file__).resolve().parent
HEADER = "# Written by tools/lock_python.py from python-requirements.in; do not edit.\n"


def lock(report: dict) -> str:
    """Formats pip's installation report as a requirements file with hashes."""
    lines = []
    for item in report["install"]:
        name = item["metadata"]["name"].lower().replace("_", "-")
        version = item["metadata"]["version"]
        sha256 = item["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{name}=={version} --hash=sha256:{sha256}\n")
    return HEADER + "".join(sorted(lines))


def main() -> int:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--report", "-"]
    command += ["--disable-pip-version-check", "--ignore-installed", "--only-binary=:all:"]
    command += ["--requirement", str(TOOLS / "python-requirements.in")]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    (TOOLS / "python-requirements.txt").write_text(lock(json.loads(done.stdout)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
