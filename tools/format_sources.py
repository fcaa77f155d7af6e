"""Formats the C++ files with the pinned clang-format, or says which ones differ.

As a program (`format_sources.py --check`) it checks every file of the tree: the ctest `format`.
"""

import pathlib
import subprocess
import sys

import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("tarn", "cmd", "test", "fuzz", "bench")


def all_sources() -> list[str]:
    """Returns the C++ files of the tree, relative to its root."""
    return sorted(
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".h", ".cc")
    )


def cpp_only(files: list[str]) -> list[str]:
    return [name for name in files if name.endswith((".h", ".cc")) and (ROOT / name).exists()]


def check(python: pathlib.Path, files: list[str]) -> bool:
    """Returns whether the files are formatted; names each one that is not."""
    files = cpp_only(files)
    if not files:
        return True
    command = [python.parent / "clang-format", "--dry-run", "--Werror", "--ferror-limit=1", *files]
    return subprocess.run(command, cwd=ROOT).returncode == 0


def rewrite(python: pathlib.Path, files: list[str]) -> None:
    """Formats the files in place."""
    files = cpp_only(files)
    if files:
        subprocess.run([python.parent / "clang-format", "-i", *files], cwd=ROOT, check=True)


def main(arguments: list[str]) -> int:
    python = machine.python_environment()
    if arguments == ["--check"]:
        return 0 if check(python, all_sources()) else 1
    rewrite(python, arguments or all_sources())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
