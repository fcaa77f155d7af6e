"""Makes the package: a folder with the binary and every library it needs, packed."""

import gzip
import hashlib
import os
import pathlib
import shutil
import subprocess
import tarfile

DOCUMENTS = ["LICENSE", "README.md", "docs"]


def version_of(binary: pathlib.Path) -> str:
    """Returns the version that the binary says."""
    told = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True)
    return told.stdout.split()[-1]


def install(build: pathlib.Path, folder: pathlib.Path) -> None:
    """Fills `folder` with bin/ and lib/ of the build."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(
        ["cmake", "--install", build, "--prefix", folder, "--component", "server", "--strip"],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leaves out who built it, and when."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    return entry


def pack(root: pathlib.Path, build: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """Returns the archive below `target`, with its SHA-256 beside it."""
    name = f"tarn-{version_of(build / 'tarn')}-linux-x86_64"
    folder = target / name
    install(build, folder)
    for document in DOCUMENTS:
        source = root / document
        if source.is_dir():
            shutil.copytree(source, folder / document)
        else:
            shutil.copy2(source, folder / document)
    archive = target / f"{name}.tar.gz"
    with (
        gzip.GzipFile(archive, "wb", compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as out,
    ):
        for path in sorted(folder.rglob("*")):
            out.add(path, f"{name}/{path.relative_to(folder)}", recursive=False, filter=plain)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    archive.with_name(archive.name + ".sha256").write_text(f"{digest}  {archive.name}\n")
    return archive
