"""No library in the server's process answers calls that were meant for another."""

import os
import re
import subprocess

import pytest

BINARY = os.environ["TARN_BINARY"]
BINDING = re.compile(r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `(\w+)'")
OPENSSL = re.compile(r"(EVP|SSL|CRYPTO|OPENSSL|X509|BIO|RAND|HMAC|ERR|OSSL)_")


@pytest.fixture(scope="module")
def bindings():
    """Which library each library's calls go to, as the loader says."""
    environment = dict(os.environ, LD_BIND_NOW="1", LD_DEBUG="bindings")
    told = subprocess.run(
        [BINARY, "--version"], env=environment, capture_output=True, text=True, check=True
    ).stderr
    found = BINDING.findall(told)
    assert len(found) > 1000
    return [(os.path.basename(caller), os.path.basename(to), name) for caller, to, name in found]


def test_calls_of_openssl_go_to_one_openssl(bindings):
    callers = set()
    for caller, to, name in bindings:
        if not OPENSSL.match(name) or caller.startswith("libparquet."):
            continue
        callers.add(caller.split(".")[0])
        assert to.startswith(("libcrypto.", "libssl.")), f"{caller}: {name} is that of {to}"
    assert {"tarn", "libcurl", "librdkafka", "libssl"} <= callers
