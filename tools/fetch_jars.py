#!/usr/bin/env python3
"""Fetches the Java libraries that tests run, each once per machine.

    fetch_jars.py NAME…         fetch each, print its directory, one a line
    fetch_jars.py --pin NAME…   write checksums.txt of each anew, after its pom.xml was changed

NAME is a folder of tools/ with a pom.xml. Maven copies the jars that it names; each must have the
sha256 that checksums.txt beside it says, and no other may come along.
"""

import fcntl
import hashlib
import os
import pathlib
import shutil
import sys

import fetch_deps

TOOLS = pathlib.Path(__file__).resolve().parent


def java() -> str:
    """Path of the JVM."""
    program = shutil.which("java")
    if program is None:
        raise fetch_deps.FetchError(
            "java is missing; ./dev test installs it, or: apt-get install openjdk-17-jre-headless")
    return program


def copy_jars(pins: pathlib.Path, target: pathlib.Path) -> dict[str, str]:
    """Has Maven fill `target` with the jars of pins/pom.xml; returns their sha256 by name."""
    maven = shutil.which("mvn")
    if maven is None:
        raise fetch_deps.FetchError(
            "mvn is missing; ./dev test installs it, or: apt-get install maven")
    repository = target.parent / f"{target.name}-repository"
    fetch_deps.run_client(
        [maven, "-q", "-B", "-f", str(pins / "pom.xml"), f"-Dmaven.repo.local={repository}",
         "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={target}"],
        target.parent)
    shutil.rmtree(repository, ignore_errors=True)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in target.iterdir()}


def checksums(pins: pathlib.Path) -> dict[str, str]:
    """The sha256 of each jar by its name, as pinned."""
    lines = (pins / "checksums.txt").read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def copy_pinned_jars(pins: pathlib.Path, target: pathlib.Path) -> None:
    """Has Maven fill `target` and compares it with the pins."""
    found = copy_jars(pins, target)
    if found != checksums(pins):
        wrong = sorted(set(found.items()) ^ set(checksums(pins).items()))
        raise fetch_deps.FetchError(f"jars differ from {pins.name}/checksums.txt: {wrong}")


def fetch(name: str, fill=copy_pinned_jars) -> pathlib.Path:
    """Returns the directory of tools/<name>, filling it first, with the jars, if it is missing.

    `fill` is called with the folder of the pins and the directory that it makes.
    """
    pins = TOOLS / name
    content = (pins / "pom.xml").read_bytes() + (pins / "checksums.txt").read_bytes()
    root = fetch_deps.cache_root()
    final = root / f"{name}-{hashlib.sha256(content).hexdigest()[:10]}"
    if final.exists():
        return final
    root.mkdir(parents=True, exist_ok=True)
    with open(root / f".{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if final.exists():
            return final
        print(f"fetching {name} into {final}", file=sys.stderr)
        staging = root / f".{name}-{os.getpid()}"
        shutil.rmtree(staging, ignore_errors=True)
        try:
            fill(pins, staging)
            os.rename(staging, final)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return final


def pin(name: str) -> None:
    """Writes checksums.txt of tools/<name> from what Maven gives now."""
    staging = fetch_deps.cache_root() / f".{name}-pin-{os.getpid()}"
    try:
        found = copy_jars(TOOLS / name, staging)
        lines = [f"{digest}  {jar}\n" for jar, digest in sorted(found.items())]
        (TOOLS / name / "checksums.txt").write_text("".join(lines))
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def main(arguments: list[str]) -> int:
    pinning = arguments[:1] == ["--pin"]
    names = arguments[1:] if pinning else arguments
    if not names or any(not (TOOLS / name / "pom.xml").exists() for name in names):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        for name in names:
            if pinning:
                pin(name)
            else:
                print(fetch(name), flush=True)
    except fetch_deps.FetchError as error:
        print(f"fetch_jars: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
