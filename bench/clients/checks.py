"""What the Python scripts of this folder share.

A script is called with the URL of the router and then those of the engines
behind it. Each check is a function; run calls them in order and prints one line
of JSON for each, and a last one with their number: clients_test.go reads them.
"""

import asyncio
import inspect
import json
import sys
import time
import traceback
import urllib.request

ROUTER = sys.argv[1]
ENGINES = sys.argv[2:]

# The router's configuration is in clients_test.go.
MODEL = "sim-8b"
ALIAS = "sim"
SLASHED = "meta-llama/Llama-3.1-8B-Instruct"
EMBEDDER = "BAAI/bge-m3"

_checks = []


def check(function):
    """Makes a function, plain or async, a check."""
    _checks.append(function)
    return function


def equal(got, want):
    assert got == want, f"got {got!r}; want {want!r}"


def raises(kind, function, *args, **kwargs):
    """Calls function, which must raise exactly kind, and returns what it raised."""
    try:
        got = function(*args, **kwargs)
    except Exception as error:  # the type is compared below
        assert type(error) is kind, f"got {error!r}; want {kind.__name__}"
        return error
    raise AssertionError(f"got {got!r}; want {kind.__name__}")


def _ask_engines(path):
    for engine in ENGINES:
        with urllib.request.urlopen(engine + path) as answer:
            yield json.load(answer)


def received(request_id):
    """Returns what an engine tells of the request that it received with that x-request-id."""
    for answer in _ask_engines("/sim/requests"):
        for request in answer["requests"]:
            if any(h["name"].lower() == "x-request-id" and h["value"] == request_id for h in request["headers"]):
                return request
    raise AssertionError(f"no engine has received {request_id}")


def cancelled():
    """Returns how many requests the engines have seen cancelled."""
    return sum(answer["cancelled"] for answer in _ask_engines("/sim/stats"))


def wait_cancelled(want):
    """Waits until the engines have seen that many; clients_test.go has the limit."""
    while cancelled() < want:
        time.sleep(0.01)


def run():
    for function in _checks:
        line = {"check": function.__name__, "ok": True}
        try:
            result = function()
            if inspect.isawaitable(result):
                asyncio.run(_await(result))
        except Exception:  # the check has failed, the next ones still run
            line.update(ok=False, detail=traceback.format_exc())
        print(json.dumps(line), flush=True)
    print(json.dumps({"done": len(_checks)}), flush=True)


async def _await(result):
    return await result
