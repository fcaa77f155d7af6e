"""Fetches the Trino that tests start, once per machine.

Maven copies its distribution, the archive of tools/trino/pom.xml, which must have the sha256 that
checksums.txt beside it says. Of its plugins only the one for Iceberg stays.

It costs about two minutes, 820 MB of downloads and 500 MB of disk, the first time only. Trino needs
a newer Java than Debian 12 has: java() looks for one.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import fetch_deps
import fetch_jars

JAVA_MIN = 24
PLUGINS_KEPT = {"iceberg"}


def version_of(program: pathlib.Path) -> int:
    """The feature version of a JVM, 0 when it is none."""
    try:
        done = subprocess.run([str(program), "-version"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    except OSError:
        return 0
    found = re.search(r'version "(\d+)', done.stderr)
    return int(found.group(1)) if found else 0


def java() -> pathlib.Path:
    """Path of a JVM that runs Trino: JAVA_HOME's, the one on PATH, or one of the system's."""
    candidates = sorted(pathlib.Path("/usr/lib/jvm").glob("*/bin/java"))
    if program := shutil.which("java"):
        candidates.insert(0, pathlib.Path(program))
    if home := os.environ.get("JAVA_HOME"):
        candidates.insert(0, pathlib.Path(home) / "bin" / "java")
    for program in candidates:
        if version_of(program) >= JAVA_MIN:
            return program
    raise fetch_deps.FetchError(
        f"Trino needs Java {JAVA_MIN} or newer; install one below /usr/lib/jvm or set JAVA_HOME")


def unpack(pins: pathlib.Path, target: pathlib.Path) -> None:
    """Makes `target` the folder of the distribution, of its plugins with those that are kept."""
    scratch = target.with_name(f"{target.name}-archive")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        fetch_jars.copy_pinned_jars(pins, scratch / "jars")
        (archive,) = (scratch / "jars").iterdir()
        # Plugins are hard links to each other: all are written before any is removed.
        with tarfile.open(archive) as bundle:
            bundle.extractall(scratch / "unpacked", filter="data")
        (root,) = (scratch / "unpacked").iterdir()
        for plugin in (root / "plugin").iterdir():
            if plugin.name not in PLUGINS_KEPT:
                shutil.rmtree(plugin)
        os.rename(root, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def fetch() -> pathlib.Path:
    """Returns the directory of the distribution, filling it first if it is missing."""
    return fetch_jars.fetch("trino", unpack)
