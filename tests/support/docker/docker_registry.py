"""An image registry as small as a real engine accepts, on loopback: it holds one image under any name."""

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from tests.support.proxies.own_servers import own_server

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


class Registry:
    """`image` is its name; pulls are counted and wait while `gate` is not set; `missing` makes it deny the image."""

    def __init__(self, layer: bytes, port: int) -> None:
        self.image = f"127.0.0.1:{port}/busybox:1"
        self.gate = threading.Event()
        self.gate.set()
        self.missing = False
        self.pulls = 0
        packed = gzip.compress(layer, compresslevel=1, mtime=0)
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Cmd": ["/bin/sleep", "60"]},
                "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
            }
        ).encode()
        self.blobs = {_digest(blob): blob for blob in (packed, config)}
        self.manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": _described("application/vnd.docker.container.image.v1+json", config),
                "layers": [_described("application/vnd.docker.image.rootfs.diff.tar.gzip", packed)],
            }
        ).encode()


@contextmanager
def registry(layer: bytes) -> Iterator[Registry]:
    """It runs while the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            kind, _, name = self.path.rpartition("/")
            if self.path == "/v2/":
                self.answer("application/json", b"{}")
            elif kind.endswith("/manifests") and not held.missing:
                held.pulls += self.command == "HEAD"  # a pull asks this first, and no more when nothing is new
                held.gate.wait(30)
                self.answer(MANIFEST, held.manifest)
            elif kind.endswith("/blobs") and name in held.blobs:
                self.answer("application/octet-stream", held.blobs[name])
            else:
                self.answer("application/json", b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}', 404)

        do_HEAD = do_GET  # noqa: N815

        def answer(self, kind: str, body: bytes, status: int = 200) -> None:
            self.send_response(status)
            headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Docker-Content-Digest": _digest(body)}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

    with own_server(Handler) as server:
        held = Registry(layer, server.port)
        try:
            yield held
        finally:
            held.gate.set()


def _described(kind: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": kind, "size": len(blob), "digest": _digest(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"
