"""A small gRPC service to roll out: it says which revision it is. It needs grpcio alone.

    rollway.example.Service/Who       one answer: {"deployment", "revision", "route", "version"}
    rollway.example.Service/Count     {"count", "revision"} ten times a second, until the caller says no more
    grpc.health.v1.Health/Check       SERVING, once STARTUP_SECONDS have passed

Messages are JSON text, so that no code must be generated; a real service has its messages, and its health from
grpcio-health-checking. FAIL_EVERY=5: every fifth call ends with UNAVAILABLE, a Count after its first answer.
SIGTERM: no new calls, those under way are finished, exit 0.
"""

import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc

STARTED = time.monotonic()
STARTUP_SECONDS = float(os.environ.get("STARTUP_SECONDS", "0"))
IDENTITY = {name: os.environ.get(f"ROLLWAY_{name.upper()}", "") for name in ("deployment", "revision", "route")}
IDENTITY["version"] = os.environ.get("VERSION", "")
FAIL_EVERY = int(os.environ.get("FAIL_EVERY", "0"))
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"  # grpc.health.v1.HealthCheckResponse

calls = itertools.count(1)


def fails() -> bool:
    """Whether this call is one of those that shall fail."""
    return bool(FAIL_EVERY) and next(calls) % FAIL_EVERY == 0


def who(_: bytes, context: grpc.ServicerContext) -> bytes:
    """Which revision this is."""
    if fails():
        context.abort(grpc.StatusCode.UNAVAILABLE, "FAIL_EVERY says so")
    return json.dumps(IDENTITY).encode()


def count(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    """1, 2, 3, ... until the caller says no more, which the requests' end is."""
    over, fail = threading.Event(), fails()

    def read() -> None:
        for _ in requests:
            pass
        over.set()

    threading.Thread(target=read, daemon=True).start()
    for number in itertools.count(1):
        yield json.dumps({"count": number, "revision": IDENTITY["revision"]}).encode()
        if fail:
            context.abort(grpc.StatusCode.UNAVAILABLE, "FAIL_EVERY says so")
        if over.wait(0.1):
            return


def check(_: bytes, __: grpc.ServicerContext) -> bytes:
    """Of the whole server, whichever service is asked about."""
    return SERVING if time.monotonic() - STARTED >= STARTUP_SECONDS else NOT_SERVING


def main() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    server = grpc.server(ThreadPoolExecutor(32), options=[("grpc.so_reuseport", 0)])
    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "Who": grpc.unary_unary_rpc_method_handler(who),
        "Count": grpc.stream_stream_rpc_method_handler(count),
    }
    health: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {"Check": grpc.unary_unary_rpc_method_handler(check)}
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler("rollway.example.Service", methods),
            grpc.method_handlers_generic_handler("grpc.health.v1.Health", health),
        )
    )
    server.add_insecure_port(f"{os.environ.get('HOST', '127.0.0.1')}:{os.environ['PORT']}")
    server.start()
    print(f"{IDENTITY['revision']} listens on port {os.environ['PORT']}", file=sys.stderr, flush=True)
    stopping.wait()
    server.stop(grace=60).wait()


if __name__ == "__main__":
    main()
