#!/usr/bin/env python3
"""Checks the rules of CONTRIBUTING.md that a machine can check. Runs as the ctest `tidy`.

Each rule is a function from the tree to findings. A file that must break a rule is listed in
tools/tidy_exceptions.txt with its reason.

    tidy.py          check the tree
    tidy.py PATH…    check the tree, report what concerns these files
"""

import ast
import dataclasses
import pathlib
import posixpath
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

import cpp_text

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = "tools/layers.txt"
EXCEPTIONS = "tools/tidy_exceptions.txt"
HEADER_LINES_MAX = 400
SOURCE_LINES_MAX = 800
TEST_LINES_MAX = 1200
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100
UNITS_IN_FOLDER_MAX = 30
CODE_SUFFIXES = (".h", ".cc")
TEXT_SUFFIXES = CODE_SUFFIXES + (".py", ".md", ".txt", ".cmake", ".sh", ".in", ".supp", ".sql")
TEXT_SUFFIXES += (".toml", ".yaml", ".yml", ".java", ".go", ".xml")
TEXT_NAMES = ("dev", "run", "pre-commit", ".gitignore", ".clang-format", ".clang-tidy", "LICENSE")
# Inputs and expected bytes of tests are kept as they came.
DATA_FOLDERS = ("test/data/", "test/cases/")
# A contract or fixture is a header that only tests include.
TEST_ENDINGS = ("_test.cc", "_contract.h", "_fixture.h")
TEST_KINDS = ("contract", "fault", "golden", "model", "stress")

BANNED_WORDS = {
    "Manager", "Helper", "Helpers", "Util", "Utils", "Utility", "Utilities", "Common",
    "Processor", "Impl", "Info", "New", "Old", "Misc",
}  # fmt: skip
# Words (one of which any match holds), pattern, where it is allowed, what to do instead.
BANNED_CALLS = (
    (
        ("system_clock",),
        r"\bsystem_clock::now\b",
        ("tarn/base/clock.cc", "bench/"),
        "take the time from a Clock",
    ),
    (
        ("std::c", "print"),
        r"\bstd::(?:cout|cerr|clog)\b|\bfmt::print\b|(?<![\w:])(?:std::)?v?f?printf\s*\(",
        ("tarn/cli/", "cmd/", "bench/", "fuzz/", "tarn/base/check.cc", "tarn/base/log.cc"),
        "log it (tarn/base/log.h) or return it",
    ),
    (("rand",), r"(?<![\w:.>])(?:std::)?s?rand\s*\(", (), "take randomness from tarn/base"),
    (("throw",), r"\bthrow\b", ("bench/",), "return a Status; only adapters may throw"),
)
# Header pattern, the only places that may include it.
ROOM_ONLY_HEADERS = (
    (r"duckdb[./]", ("tarn/engine/",)),
    (r"librdkafka/", ("tarn/source/", "test/support/", "bench/")),
    (r"sqlite3\.h$|libpq-fe\.h$", ("tarn/metastore/", "tarn/source/postgres/", "test/support/",
                                    "bench/")),
    (r"boost/", ("tarn/server/http/", "bench/")),
)
# What headers of ours must not include, and what they include instead.
HEAVY_HEADERS = (
    (r"(?:arrow|parquet)/(?:.*/)?api\.h$", "arrow/type_fwd.h or the one header needed"),
    (r"parquet/arrow/|arrow/(?:dataset|acero)/", "a forward declaration"),
    (r"nlohmann/json\.hpp$", "nlohmann/json_fwd.hpp"),
    (r"simdjson\.h$|spdlog/spdlog\.h$|fmt/format\.h$", "a forward declaration"),
)
REGISTRY_HOSTS = re.compile(
    r"\b(?:pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|repo1?\.maven(?:\.apache)?\.org"
    r"|(?:deb|security|ftp)\.debian\.org|archive\.ubuntu\.com|crates\.io|proxy\.golang\.org"
    r"|docker\.io|ghcr\.io|quay\.io|rubygems\.org)\b"
)
# Texts without any of these need no search.
WORD_HINTS = ("FIXME", "XXX", "HACK", "TODO", "pypi", "pythonhosted", "npmjs", "repo", "debian.org")
WORD_HINTS += ("ubuntu.com", "crates.io", "golang.org", "docker.io", "ghcr", "quay", "rubygems")


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message} [{self.rule}]"


class Tree:
    """The text files of the repository, by path from its root."""

    def __init__(self, files: dict[str, str], others: set[str] = frozenset()):
        self.files = files
        self.paths = set(files) | set(others)
        self.folders = {parent for path in self.paths for parent in parents(path)}
        self.sources = {p: t for p, t in files.items() if p.endswith(CODE_SUFFIXES)}
        self.code = {path: cpp_text.blank(text) for path, text in self.sources.items()}
        self.includes = {p: cpp_text.includes(t, self.code[p]) for p, t in self.sources.items()}
        self.layers = parse_layers(files.get(LAYERS, ""))


def parents(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path


def parse_layers(text: str) -> dict[str, list[str]]:
    """Reads `room: dep dep` lines."""
    layers = {}
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line:
            room, _, deps = line.partition(":")
            layers[room] = deps.split()
    return layers


def room_of(path: str) -> str:
    """Returns the room of a path: the folder below tarn/, else the top folder."""
    parts = path.split("/")
    return parts[1] if parts[0] == "tarn" and len(parts) > 2 else parts[0]


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def is_test(path: str) -> bool:
    return path.startswith("test/") or path.endswith(TEST_ENDINGS)


def layers_are_sound(tree: Tree) -> Iterator[Finding]:
    """Rooms are listed, known and free of cycles."""
    done: set[str] = set()
    for room, deps in tree.layers.items():
        for dep in deps:
            if dep != "*" and dep not in tree.layers:
                yield Finding(LAYERS, 1, "layers", f"{room} depends on unknown room {dep}")
            elif dep != "*" and dep not in done:
                yield Finding(LAYERS, 1, "layers", f"{room} is listed above {dep}: bottom first")
        done.add(room)
    for path in tree.sources:
        if path.startswith("tarn/") and room_of(path) not in tree.layers:
            yield Finding(path, 1, "layers", f"{room_of(path)} is not a room of {LAYERS}")


def includes_follow_layers(tree: Tree) -> Iterator[Finding]:
    """Ours are included by repository path, and only along the arrows."""
    for path, includes in tree.includes.items():
        room = room_of(path)
        allowed = tree.layers.get(room, [])
        for include in includes:
            ours = include.path.startswith(("tarn/", "test/", "cmd/"))
            if ours and not include.quoted:
                message = f'write "{include.path}" for headers of ours'
                yield Finding(path, include.line, "include", message)
            if not ours:
                if include.quoted:
                    message = f"{include.path}: quotes are for repository paths"
                    yield Finding(path, include.line, "include", message)
                continue
            if include.path not in tree.paths:
                message = f"{include.path} does not exist"
                yield Finding(path, include.line, "include", message)
                continue
            target = room_of(include.path)
            if target == "test":
                if not is_test(path) and room not in ("bench", "fuzz"):
                    message = "only tests include from test/"
                    yield Finding(path, include.line, "layers", message)
            elif target != room and target not in allowed and "*" not in allowed:
                message = f"{room} must not include {target}"
                yield Finding(path, include.line, "layers", message)


def foreign_headers_stay_in_their_room(tree: Tree) -> Iterator[Finding]:
    for path, includes in tree.includes.items():
        for include in includes:
            for pattern, places in ROOM_ONLY_HEADERS:
                if re.match(pattern, include.path) and not path.startswith(places):
                    message = f"{include.path} is only for {', '.join(places)}"
                    yield Finding(path, include.line, "room-header", message)
            if path.endswith(".h"):
                for pattern, instead in HEAVY_HEADERS:
                    if re.match(pattern, include.path):
                        message = f"{include.path} is heavy in a header: use {instead}"
                        yield Finding(path, include.line, "heavy-header", message)


def lengths(tree: Tree) -> Iterator[Finding]:
    folders: dict[str, set[str]] = {}
    for path, text in tree.sources.items():
        limit = HEADER_LINES_MAX if path.endswith(".h") else SOURCE_LINES_MAX
        limit = TEST_LINES_MAX if is_test(path) else limit
        count = text.count("\n")
        if count > limit:
            yield Finding(path, count, "length", f"{count} lines, at most {limit}")
        for function in cpp_text.functions(tree.code[path]):
            if function.lines > FUNCTION_LINES_MAX:
                message = f"function of {function.lines} lines, at most {FUNCTION_LINES_MAX}"
                yield Finding(path, function.line, "length", message)
        unit = re.sub(r"(_test)?\.\w+$", "", posixpath.basename(path))
        folders.setdefault(posixpath.dirname(path), set()).add(unit)
    for folder, units in folders.items():
        if len(units) > UNITS_IN_FOLDER_MAX:
            message = f"{len(units)} units in one folder, at most {UNITS_IN_FOLDER_MAX}"
            yield Finding(folder, 1, "length", message)
    for path, text in tree.files.items():
        if path.endswith(CODE_SUFFIXES + (".py", ".sh")) or path == "dev":
            for number, line in enumerate(text.splitlines(), 1):
                if len(line) > COLUMNS_MAX and "://" not in line:
                    yield Finding(path, number, "length", f"{len(line)} columns")


TYPE_NAME = re.compile(
    r"\b(?:class|struct|union|enum(?:\s+class)?)\s+(?:\[\[[^\]]*\]\]\s*)?([A-Z]\w*)"
    r"(?=\s*(?:final\b\s*)?(?:<[^;{}]*>\s*)?(?::(?!:)|\{))"
    r"|\b(?:using|concept)\s+([A-Z]\w*)\s*="
)


def banned_name(words: list[str]) -> str | None:
    for word in words:
        if word in BANNED_WORDS:
            return word
    if words == ["Data"]:
        return "Data"
    return "2" if words and re.search(r"[a-z]2$", words[-1]) else None


def names(tree: Tree) -> Iterator[Finding]:
    for path, code in tree.code.items():
        stem = posixpath.splitext(posixpath.basename(path))[0]
        words = [part.capitalize() for part in stem.removesuffix("_test").split("_")]
        if word := banned_name(words):
            yield Finding(path, 1, "name", f"file name says nothing: {word}")
        if not re.fullmatch(r"[a-z][a-z0-9_]*", stem):
            yield Finding(path, 1, "name", "file names are snake_case")
        for match in TYPE_NAME.finditer(code):
            name = match[1] or match[2]
            if word := banned_name(re.findall(r"[A-Z][a-z0-9]*", name)):
                line = line_of(code, match.start())
                yield Finding(path, line, "name", f"type name {name} says nothing: {word}")


def calls(tree: Tree) -> Iterator[Finding]:
    for path, code in tree.code.items():
        for hints, pattern, places, instead in BANNED_CALLS:
            if path.startswith(places) or not any(hint in code for hint in hints):
                continue
            if hints == ("throw",) and is_test(path):
                continue
            for match in re.finditer(pattern, code):
                message = f"{match.group().strip()}: {instead}"
                yield Finding(path, line_of(code, match.start()), "call", message)


def tests_are_named_after_sources(tree: Tree) -> Iterator[Finding]:
    kinds = "|".join(TEST_KINDS)
    for path in tree.sources:
        if path.startswith("tarn/") and path.endswith("_test.cc"):
            base = path.removesuffix("_test.cc")
            shorter = re.sub(rf"_(?:{kinds})$", "", base)
            if not any(f"{b}{s}" in tree.sources for b in (base, shorter) for s in CODE_SUFFIXES):
                yield Finding(path, 1, "test-name", "no source of that name beside it")


def headers(tree: Tree) -> Iterator[Finding]:
    """A header says what its concept is, and is included by somebody."""
    included = {i.path for includes in tree.includes.values() for i in includes}
    for path, text in tree.sources.items():
        if not path.endswith(".h"):
            continue
        lines = [line for line in text.splitlines() if line.strip()]
        first_code = next((line for line in lines if not line.startswith("//")), "")
        if first_code.strip() != "#pragma once":
            yield Finding(path, 1, "header", "the first line of code is #pragma once")
        around = lines[0:1] + lines[1:2]
        if not any(re.match(r"// ?\S+ \S+", line) for line in around):
            yield Finding(path, 1, "header", "opens with a comment: what the concept is")
        if path not in included:
            yield Finding(path, 1, "dead-file", "no file includes this header")


def sources_are_built(tree: Tree) -> Iterator[Finding]:
    """Each source lies where CMake looks: in a room, or in a folder with a CMakeLists.txt."""
    for path in tree.sources:
        if path.endswith(".cc") and not path.startswith("tarn/"):
            if not any(f"{folder}/CMakeLists.txt" in tree.paths for folder in parents(path)):
                yield Finding(path, 1, "dead-file", "no CMakeLists.txt above builds this file")


FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def heading_anchors(text: str) -> set[str]:
    anchors = set()
    for match in re.finditer(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", match[1].strip().lower())
        anchors.add(plain.replace(" ", "-"))
    return anchors


def documents(tree: Tree) -> Iterator[Finding]:
    """Links between documents are alive; each document has a title."""
    for path, text in tree.files.items():
        if not path.endswith(".md"):
            continue
        if not text.startswith("# "):
            yield Finding(path, 1, "docs", "starts with a title: # …")
        fenced = FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        for match in re.finditer(r"\[[^\]\n]*\]\(([^)\s]+)\)", fenced):
            target, _, anchor = match[1].partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            full = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            full = path if not target else full
            line = line_of(fenced, match.start())
            if full not in tree.paths and full not in tree.folders:
                yield Finding(path, line, "docs", f"link to {match[1]}: no such file")
            elif anchor and full in tree.files and anchor not in heading_anchors(tree.files[full]):
                yield Finding(path, line, "docs", f"link to {match[1]}: no such heading")


def decisions_are_numbered(tree: Tree) -> Iterator[Finding]:
    pages = sorted(p for p in tree.paths if p.startswith("docs/decisions/"))
    for number, path in enumerate(pages, 1):
        if not re.fullmatch(rf"{number:04}-[a-z0-9-]+\.md", posixpath.basename(path)):
            yield Finding(path, 1, "docs", f"expected {number:04}-title.md")


def whitespace(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.files.items():
        if text and not text.endswith("\n"):
            yield Finding(path, text.count("\n") + 1, "whitespace", "no newline at the end")
        if text.endswith("\n\n"):
            yield Finding(path, text.count("\n"), "whitespace", "blank line at the end")
        if any(f"{blank}\n" in text for blank in " \t\r"):
            for number, line in enumerate(text.split("\n"), 1):
                if line != line.rstrip():
                    yield Finding(path, number, "whitespace", "trailing blanks")
        if path.endswith(CODE_SUFFIXES + (".py",)) and "\t" in text:
            yield Finding(path, line_of(text, text.index("\t")), "whitespace", "tab")


def words(tree: Tree) -> Iterator[Finding]:
    """No registry by host name, no unfinished marks without a sentence (unless quoted)."""
    for path, text in tree.files.items():
        if path.startswith("tools/tidy") or not any(hint in text for hint in WORD_HINTS):
            continue
        for match in REGISTRY_HOSTS.finditer(text):
            message = f"{match.group()}: reach registries by their own clients"
            yield Finding(path, line_of(text, match.start()), "host", message)
        for match in re.finditer(r"\b(?:FIXME|XXX|HACK)\b", text):
            message = f"{match.group()}: finish it, or write TODO: and a sentence"
            yield Finding(path, line_of(text, match.start()), "todo", message)
        for match in re.finditer(r"(?<!`)\bTODO\b(?!: [A-Z][^\n]{15,})", text):
            message = "TODO needs a colon and a sentence"
            yield Finding(path, line_of(text, match.start()), "todo", message)


def python_functions(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.files.items():
        if not path.endswith(".py"):
            continue
        try:
            module = ast.parse(text)
        except SyntaxError as error:
            yield Finding(path, error.lineno or 1, "python", str(error.msg))
            continue
        for node in ast.walk(module):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = node.end_lineno - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    message = f"function of {lines} lines, at most {FUNCTION_LINES_MAX}"
                    yield Finding(path, node.lineno, "length", message)


RULES: tuple[Callable[[Tree], Iterator[Finding]], ...] = (
    layers_are_sound,
    includes_follow_layers,
    foreign_headers_stay_in_their_room,
    lengths,
    names,
    calls,
    tests_are_named_after_sources,
    headers,
    sources_are_built,
    documents,
    decisions_are_numbered,
    whitespace,
    words,
    python_functions,
)


def apply_exceptions(tree: Tree, findings: list[Finding]) -> Iterator[Finding]:
    """Drops what tools/tidy_exceptions.txt allows; reports its lines that allow nothing."""
    allowed: dict[tuple[str, str], int] = {}
    for number, line in enumerate(tree.files.get(EXCEPTIONS, "").splitlines(), 1):
        entry, mark, reason = line.partition("#")
        if not entry.strip():
            continue
        fields = entry.split()
        if len(fields) != 2 or not mark or len(reason.split()) < 3:
            yield Finding(EXCEPTIONS, number, "exception", "write: rule path  # reason in words")
            continue
        allowed[(fields[0], fields[1])] = number
    used = set()
    for finding in findings:
        if (finding.rule, finding.path) in allowed:
            used.add((finding.rule, finding.path))
        else:
            yield finding
    for key in allowed.keys() - used:
        message = f"{key[1]} does not break the rule {key[0]}: remove the line"
        yield Finding(EXCEPTIONS, allowed[key], "exception", message)


def check(tree: Tree) -> list[Finding]:
    """Returns what is wrong with the tree, in order of files and lines."""
    findings = [finding for rule in RULES for finding in rule(tree)]
    return sorted(apply_exceptions(tree, findings))


def load(root: pathlib.Path) -> Tree:
    """Reads the files that git tracks or would track."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(listing, cwd=root, check=True, stdout=subprocess.PIPE).stdout
    files, others = {}, set()
    for path in output.decode().split("\0"):
        if not path or not (root / path).is_file():
            continue
        text_like = path.endswith(TEXT_SUFFIXES) or posixpath.basename(path) in TEXT_NAMES
        if text_like and not path.startswith(DATA_FOLDERS):
            files[path] = (root / path).read_text(encoding="utf-8")
        else:
            others.add(path)
    return Tree(files, others)


def main(arguments: list[str]) -> int:
    findings = check(load(ROOT))
    if arguments:
        findings = [finding for finding in findings if finding.path in arguments]
    for finding in findings:
        print(finding)
    if findings:
        print(f"tidy: {len(findings)} findings", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
