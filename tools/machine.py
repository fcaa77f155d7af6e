"""Brings the machine to the state that the verbs of ./dev need: Debian packages, Python packages.

A second run finds everything in place and costs milliseconds.
"""

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

import fetch_deps

TOOLS = pathlib.Path(__file__).resolve().parent
PACKAGE_LIST = TOOLS / "debian-packages.txt"
REQUIREMENTS = TOOLS / "python-requirements.txt"
CLIENT_REQUIREMENTS = TOOLS / "client-requirements.txt"
ICEBERG_REQUIREMENTS = TOOLS / "iceberg-requirements.txt"
NPM_CLIENTS = TOOLS / "npm-clients"
POSTGRES_COMMON = "postgresql-common"
APT_INSTALL = ["apt-get", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=600"]


class SetupError(Exception):
    """The machine cannot be prepared; the message tells a person what to do."""


def parse_packages(text: str, groups: set[str]) -> list[tuple[str, str | None]]:
    """Returns (package, program or None) of each line in `groups`."""
    packages = []
    group = ""
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("["):
            group = line.strip("[]")
        elif line and group in groups:
            name, _, program = line.partition(" ?")
            packages.append((name, program.strip() or None))
    return packages


def missing_packages(packages: list[tuple[str, str | None]]) -> list[str]:
    """Returns the packages that are neither installed nor stood in for by their program."""
    wanted = [name for name, program in packages if not (program and shutil.which(program))]
    if not wanted:
        return []
    query = ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *wanted]
    try:
        done = subprocess.run(
            query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise SetupError(f"not a Debian machine; install by hand: {' '.join(wanted)}") from None
    installed = {
        line.split()[0] for line in done.stdout.decode().splitlines() if line.endswith(" installed")
    }
    return [name for name in wanted if name not in installed]


def root_prefix(command: str) -> list[str]:
    """Returns what to put before a command so that it runs as root."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        quiet = subprocess.run(["sudo", "-n", "true"], stderr=subprocess.DEVNULL)
        if quiet.returncode == 0 or sys.stdin.isatty():
            return ["sudo"]
    raise SetupError(f"Debian packages are missing; as root run:\n  {command}")


def install_packages(groups: set[str]) -> None:
    """Installs what is missing of the package groups."""
    missing = missing_packages(parse_packages(PACKAGE_LIST.read_text(), groups))
    if not missing:
        return
    line = f"apt-get update && apt-get install -y --no-install-recommends {' '.join(missing)}"
    prefix = root_prefix(line)
    environment = ["env", "DEBIAN_FRONTEND=noninteractive"]

    def apt(*arguments: str) -> None:
        command = prefix + environment + APT_INSTALL + list(arguments)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno())
        if done.returncode != 0:
            raise SetupError(f"apt-get failed; try as root:\n  {line}")

    print(f"installing {len(missing)} Debian packages", file=sys.stderr)
    apt("-q", "update")
    if any(name.startswith("postgresql") for name in missing):
        forbid_main_cluster(apt, prefix)
    apt("-q", "install", *missing)


def forbid_main_cluster(apt, prefix: list[str]) -> None:
    """Keeps the PostgreSQL package from creating and starting a cluster nobody asked for."""
    apt("-q", "install", POSTGRES_COMMON)
    rule = r"s/^#\?create_main_cluster.*/create_main_cluster = false/"
    config = "/etc/postgresql-common/createcluster.conf"
    subprocess.run(prefix + ["sed", "-i", rule, config], check=True, stdin=subprocess.DEVNULL)


def pinned_python() -> str:
    """Returns an interpreter of the version whose wheels are pinned."""
    if sys.version_info[:2] == (3, 11):
        return sys.executable
    for name in ("/usr/bin/python3.11", "python3.11"):
        if found := shutil.which(name):
            return found
    raise SetupError("the Python packages are pinned for Python 3.11, which is not installed")


def interpreter_of(name: str, requirements: pathlib.Path) -> pathlib.Path:
    """Returns where the interpreter of a virtual environment is or will be."""
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:10]
    return fetch_deps.cache_root() / f"{name}-{digest}" / "bin" / "python"


def python_interpreter() -> pathlib.Path:
    """Returns the interpreter with what checks and tests use."""
    return interpreter_of("venv", REQUIREMENTS)


def client_interpreter() -> pathlib.Path:
    """Returns the interpreter with the vendor's client libraries, which have needs of their own."""
    return interpreter_of("clients", CLIENT_REQUIREMENTS)


def iceberg_interpreter() -> pathlib.Path:
    """Returns the interpreter with the Iceberg clients."""
    return interpreter_of("iceberg", ICEBERG_REQUIREMENTS)


def python_environment() -> pathlib.Path:
    """Returns python_interpreter(), installing its packages first if needed."""
    return filled(python_interpreter(), REQUIREMENTS)


def client_environment() -> pathlib.Path:
    """Returns client_interpreter(), installing its packages first if needed."""
    return filled(client_interpreter(), CLIENT_REQUIREMENTS)


def iceberg_environment() -> pathlib.Path:
    """Returns iceberg_interpreter(), installing its packages first if needed."""
    return filled(iceberg_interpreter(), ICEBERG_REQUIREMENTS)


def filled(interpreter: pathlib.Path, requirements: pathlib.Path) -> pathlib.Path:
    """Makes the virtual environment of `interpreter` unless it is complete."""
    home = interpreter.parent.parent
    complete = home / ".complete"
    if complete.exists():
        return interpreter
    root = home.parent
    root.mkdir(parents=True, exist_ok=True)
    with open(root / ".venv.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if complete.exists():
            return interpreter
        print(f"installing Python packages into {home}", file=sys.stderr)
        shutil.rmtree(home, ignore_errors=True)
        run_setup([pinned_python(), "-m", "venv", str(home)])
        pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--require-hashes"]
        pip += ["--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
        run_setup(pip + ["--requirement", str(requirements)])
        complete.touch()
    return interpreter


def npm_clients() -> pathlib.Path:
    """Returns where the vendor's TypeScript clients are or will be installed."""
    digest = hashlib.sha256((NPM_CLIENTS / "package-lock.json").read_bytes()).hexdigest()[:10]
    return fetch_deps.cache_root() / f"npm-clients-{digest}"


def npm_environment() -> pathlib.Path:
    """Returns npm_clients(), installing what the lock file names by hash first if needed."""
    final = npm_clients()
    if final.is_dir():
        return final
    root = final.parent
    root.mkdir(parents=True, exist_ok=True)
    with open(root / ".npm.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if final.is_dir():
            return final
        print(f"installing TypeScript clients into {final}", file=sys.stderr)
        staging = root / f".{final.name}"
        shutil.rmtree(staging, ignore_errors=True)
        shutil.copytree(NPM_CLIENTS, staging)
        run_setup(["npm", "ci", "--prefix", str(staging), "--ignore-scripts", "--no-audit",
                   "--no-fund", "--silent"])
        os.rename(staging, final)
    return final


def run_setup(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno())
    if done.returncode != 0:
        raise SetupError(f"failed: {' '.join(command)}")
