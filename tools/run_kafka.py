#!/usr/bin/env python3
"""Runs the pinned Kafka broker on the loopback until it is stopped, to try things out.

    run_kafka.py [--port 9092] [--data FOLDER]

Topics are made when they are first used, with four partitions. Without --data they are gone with
the broker.
"""

import argparse
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import fetch_deps
import fetch_kafka


def serve(port: int, data: pathlib.Path) -> int:
    home = fetch_kafka.fetch()
    if not (data / "log").exists():
        data.mkdir(parents=True, exist_ok=True)
        shutil.copytree(home / "formatted", data / "log")
    configuration = data / "server.properties"
    configuration.write_text(
        fetch_kafka.properties(data / "log", port, fetch_kafka.free_ports(1)[0]))
    broker = subprocess.Popen(fetch_kafka.broker_command(home, configuration),
                              stdin=subprocess.DEVNULL)
    # The broker gets the interrupt of a terminal, too, and ends in good order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: broker.terminate())
    try:
        fetch_kafka.wait_until_open(broker, port)
        print(f"listening on 127.0.0.1:{port}", flush=True)
        return 0 if broker.wait() in (0, 130, 143) else 1  # It ended by itself, or was told to.
    finally:
        broker.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=9092)
    parser.add_argument("--data", type=pathlib.Path)
    options = parser.parse_args()
    try:
        if options.data:
            return serve(options.port, options.data.absolute())
        with tempfile.TemporaryDirectory(prefix="kafka-") as folder:
            return serve(options.port, pathlib.Path(folder))
    except fetch_deps.FetchError as error:
        print(f"run_kafka: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
