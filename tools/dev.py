#!/usr/bin/env python3
"""The verbs of ./dev. Each one installs what it needs and is missing, then does one thing.

build [TARGET]     build the optimised binary, build/release/tarn, or another target (all)
test [FILTER]      build, run every test but the soak; FILTER is a ctest -R expression
check [--staged]   formatting, tidy; --lint adds clang-tidy on the files that git sees changed
format [PATH…]     format the C++ files, or those given
asan [FILTER]      the tests under AddressSanitizer and UndefinedBehaviorSanitizer
tsan [FILTER]      the tests of the rooms with threads, or FILTER, under ThreadSanitizer
fuzz [TARGET]      fuzz one target for --seconds (60); no TARGET lists them
bench [NAME]       run the benchmarks, or one; arguments after -- are passed on
soak [FILTER]      the tests too long for every run
demo [--keep]      land change events, merge them into a table and query it, on this machine;
                   --kafka does it with a topic of a broker that it starts
package            pack the binary and its libraries into build/package/, to run elsewhere
setup              only install what is missing and link the git hook
"""

import argparse
import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator

import fetch_deps
import format_sources
import machine
import package

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"
TSAN_ROOMS = "^(base|storage|metastore|catalog|server|task)"
# Instrumented code confuses these warnings of GCC 12 about libstdc++; the plain build keeps them.
SANITIZER_FLAGS = "-Wno-stringop-overflow -Wno-array-bounds -Wno-restrict"
JOBS = os.environ.get("TARN_JOBS") or str(os.cpu_count() or 2)
TEST_JOBS = int(JOBS) + 1  # Half of the tests' time is waiting: for brokers, for kills, for clocks.


class Failed(Exception):
    """A step ended with an error and has already said why."""

    def __init__(self, code: int):
        super().__init__(code)
        self.code = code


def run(command: list, **options) -> None:
    """Runs one step; a failing step ends the verb with the step's exit code."""
    sys.stdout.flush()
    options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([str(part) for part in command], cwd=ROOT, **options)
    if done.returncode != 0:
        raise Failed(done.returncode if done.returncode > 0 else 128 - done.returncode)


def configure(preset: str, definitions: list[str]) -> pathlib.Path:
    """Configures `preset` unless it is configured just so; later edits are noticed by ninja."""
    directory = ROOT / "build" / preset
    dependencies = [str(fetch_deps.fetch(name)) for name in fetch_deps.DEPENDENCIES]
    wanted = "\n".join(definitions + dependencies)
    stamp = directory / ".configured"
    if not (directory / "build.ninja").exists() or not stamp.exists() or (
        stamp.read_text() != wanted
    ):
        run(["cmake", "--preset", preset, "--no-warn-unused-cli", *definitions])
        stamp.write_text(wanted)
    return directory


def build(preset: str, targets: list[str], *, groups: set[str], tests: bool) -> pathlib.Path:
    """Installs what is missing, configures and builds; returns the build directory."""
    machine.install_packages(groups)
    if tests:
        machine.python_environment()
        machine.client_environment()
        machine.iceberg_environment()
        machine.npm_environment()
    definitions = [f"-DTARN_TEST_PYTHON={machine.python_interpreter()}"]
    definitions += [f"-DTARN_CLIENT_PYTHON={machine.client_interpreter()}"]
    definitions += [f"-DTARN_ICEBERG_PYTHON={machine.iceberg_interpreter()}"]
    definitions += [f"-DTARN_NPM_CLIENTS={machine.npm_clients()}"]
    if preset == "fuzz":
        definitions += ["-DCMAKE_C_COMPILER=clang-19", "-DCMAKE_CXX_COMPILER=clang++-19"]
    if preset in ("asan", "tsan"):
        definitions.append(f"-DCMAKE_CXX_FLAGS={SANITIZER_FLAGS}")
    with build_lock(preset):
        directory = configure(preset, definitions)
        command = ["cmake", "--build", directory, "--parallel", JOBS]
        # Neither a preprocessor run nor the hash of a precompiled header for each source.
        cache = {"CCACHE_DEPEND": "1", "CCACHE_INODECACHE": "1"}
        run(command + (["--target", *targets] if targets else []), env=cache | dict(os.environ))
    return directory


@contextlib.contextmanager
def build_lock(preset: str) -> Iterator[None]:
    """Keeps two builds out of one build directory."""
    directory = ROOT / "build" / preset
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another build in {directory}", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_environment(directory: pathlib.Path) -> dict[str, str]:
    """Returns the environment that tests may rely on."""
    environment = dict(os.environ)
    environment["TARN_BINARY"] = str(directory / "tarn")
    environment["TARN_TEST_PYTHON"] = str(machine.python_environment())
    environment["TARN_TEST_CACHE"] = str(fetch_deps.cache_root())
    suppressions = f"suppressions={TOOLS}"
    environment["ASAN_OPTIONS"] = f"{suppressions}/asan.supp:detect_stack_use_after_return=1"
    environment["LSAN_OPTIONS"] = f"{suppressions}/lsan.supp:print_suppressions=0"
    environment["UBSAN_OPTIONS"] = f"{suppressions}/ubsan.supp:print_stacktrace=1:halt_on_error=1"
    environment["TSAN_OPTIONS"] = f"{suppressions}/tsan.supp:second_deadlock_stack=1"
    return environment


def run_tests(preset: str, select: list[str]) -> None:
    directory = build(preset, [], groups={"build", "test", "kafka"}, tests=True)
    command = ["ctest", "--test-dir", directory, "--output-on-failure", "-j", str(TEST_JOBS)]
    command += ["--no-tests=error", *select]
    if preset in ("asan", "tsan"):
        command = fixed_addresses() + command
    run(command, env=test_environment(directory))


def fixed_addresses() -> list[str]:
    """Returns what turns address randomisation off, where the machine allows it.

    The sanitizers' shadow maps collide with the layouts of some kernels.
    """
    prefix = ["setarch", "--addr-no-randomize"]
    if not shutil.which("setarch"):
        return []
    allowed = subprocess.run([*prefix, "true"], stderr=subprocess.DEVNULL).returncode == 0
    return prefix if allowed else []


def verb_build(options) -> None:
    has_binary = (ROOT / "cmd" / "tarn" / "CMakeLists.txt").exists()
    targets = options.target or (["tarn"] if has_binary else [])
    build(options.preset, targets, groups={"build"}, tests=False)


def verb_test(options) -> None:
    select = ["-R", options.filter] if options.filter else []
    run_tests(options.preset, ["-LE", "^soak$", *select])


def verb_asan(options) -> None:
    select = ["-R", options.filter] if options.filter else []
    run_tests("asan", ["-LE", "^soak$", *select])


def verb_tsan(options) -> None:
    run_tests("tsan", ["-LE", "^soak$", "-R", options.filter or TSAN_ROOMS])


def verb_soak(options) -> None:
    select = ["-R", options.filter] if options.filter else []
    run_tests("release", ["-L", "^soak$", *select])


def verb_check(options) -> None:
    python = machine.python_environment()
    staged = git_files("diff", "--cached", "--diff-filter=d", "--name-only")
    if options.staged and not staged:
        return
    files = staged if options.staged else format_sources.all_sources()
    failures = [] if format_sources.check(python, files) else ["formatting (run ./dev format)"]
    scripts = [["tidy.py", *staged]] if options.staged else [["tidy.py"], ["tidy_test.py"]]
    for script, *arguments in scripts:
        command = [sys.executable, TOOLS / script, *arguments]
        if subprocess.run(command, cwd=ROOT).returncode != 0:
            failures.append(script)
    if options.lint and not lint(python):
        failures.append("clang-tidy")
    if failures:
        print(f"check failed: {', '.join(failures)}", file=sys.stderr)
        raise Failed(1)


def lint(python: pathlib.Path) -> bool:
    """Runs clang-tidy on the sources that differ from the last commit."""
    changed = git_files("diff", "HEAD", "--diff-filter=d", "--name-only")
    changed += git_files("ls-files", "--others", "--exclude-standard")
    sources = sorted({name for name in changed if name.endswith(".cc")})
    if not sources:
        return True
    directory = configure("dev", [])
    command = [python.parent / "clang-tidy", "-p", directory, "--quiet", *sources]
    return subprocess.run(command, cwd=ROOT).returncode == 0


def git_files(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().splitlines()


def verb_format(options) -> None:
    python = machine.python_environment()
    files = [os.path.relpath(path, ROOT) for path in options.path]
    format_sources.rewrite(python, files or format_sources.all_sources())


def verb_fuzz(options) -> None:
    known = sorted(path.stem for path in (ROOT / "fuzz").glob("*.cc"))
    if options.target not in known:
        print("fuzz targets: " + (" ".join(known) or "none yet"))
        raise Failed(2 if options.target else 0)
    directory = build("fuzz", [options.target], groups={"build", "fuzz"}, tests=False)
    corpus = directory / "corpus" / options.target
    corpus.mkdir(parents=True, exist_ok=True)
    command = [directory / "fuzz" / options.target, corpus]
    seeds = ROOT / "test" / "data" / "fuzz" / options.target
    if seeds.is_dir():
        command.append(seeds)
    run(command + [f"-max_total_time={options.seconds}", "-print_final_stats=1"])


def verb_bench(options) -> None:
    scripts = {path.stem for path in (ROOT / "bench").glob("*_bench.py")}
    known = sorted(scripts | {path.stem for path in (ROOT / "bench").glob("*_bench.cc")})
    if options.name and options.name not in known:
        print("benchmarks: " + (" ".join(known) or "none yet"))
        raise Failed(2)
    chosen = [options.name] if options.name else known
    if not chosen:
        print("benchmarks: none yet")
        return
    targets = ["tarn", *(name for name in chosen if name not in scripts)]
    targets += ["kafka_reader"] if "kafka_bench" in chosen else []
    groups = {"build", "bench", "kafka"}
    directory = build("release", targets, groups=groups, tests=bool(scripts))
    for name in chosen:
        print(f"== {name}", flush=True)
        if name in scripts:
            command = [machine.python_environment(), ROOT / "bench" / f"{name}.py"]
        else:
            command = [directory / "bench" / name]
        run([*command, *options.rest], env=test_environment(directory))


def verb_demo(options) -> None:
    script = ROOT / "test" / "e2e" / ("kafka_demo.py" if options.kafka else "demo.py")
    groups = {"build", "kafka"} if options.kafka else {"build"}
    directory = build("release", ["tarn"], groups=groups, tests=True)
    command = [machine.python_environment(), script, *(["--keep"] if options.keep else [])]
    run(command, env=test_environment(directory), stdin=None)


def verb_package(options) -> None:
    directory = build("release", ["tarn"], groups={"build"}, tests=False)
    print(package.pack(ROOT, directory, ROOT / "build" / "package").relative_to(ROOT))


def verb_setup(options) -> None:
    machine.install_packages({"build", "test", "kafka"})
    machine.python_environment()
    machine.client_environment()
    machine.iceberg_environment()
    machine.npm_environment()
    for name in fetch_deps.DEPENDENCIES:
        fetch_deps.fetch(name)
    run(["git", "config", "core.hooksPath", ".githooks"])


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="dev", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="./dev VERB …",
    )
    verbs = parser.add_subparsers(
        dest="verb", required=True, metavar="VERB", help=argparse.SUPPRESS
    )

    def verb(name: str) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, prog=f"./dev {name}")
        added.set_defaults(run=globals()[f"verb_{name}"])
        return added

    builder = verb("build")
    builder.add_argument("target", nargs="*")
    builder.add_argument("--preset", default="release")
    tester = verb("test")
    tester.add_argument("filter", nargs="?")
    tester.add_argument("--preset", default="release")
    for name in ("asan", "tsan", "soak"):
        verb(name).add_argument("filter", nargs="?")
    checker = verb("check")
    checker.add_argument("--staged", action="store_true")
    checker.add_argument("--lint", action="store_true")
    verb("format").add_argument("path", nargs="*", type=pathlib.Path)
    fuzzer = verb("fuzz")
    fuzzer.add_argument("target", nargs="?")
    fuzzer.add_argument("--seconds", type=int, default=60)
    bencher = verb("bench")
    bencher.add_argument("name", nargs="?")
    bencher.add_argument("rest", nargs="*")
    demo = verb("demo")
    demo.add_argument("--keep", action="store_true")
    demo.add_argument("--kafka", action="store_true")
    verb("package")
    verb("setup")
    return parser.parse_args(arguments or ["--help"])


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    try:
        options.run(options)
    except Failed as failed:
        return failed.code
    except (machine.SetupError, fetch_deps.FetchError) as error:
        print(f"dev: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
