"""A real TLS server in front of Valkey, which comes from the wheel without TLS; certificates are OpenSSL's."""

import asyncio
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from stack.home.folder import project_root


@contextmanager
def tls_in_front_of(port: int, folder: Path) -> Iterator[int]:
    """The port of 127.0.0.1 where `port` is reached by TLS, with a certificate of the authority `folder`/ca.pem."""
    make_certificate(folder)
    command = [sys.executable, "-m", "tests.support.faults.tls", str(port), str(folder)]
    server = subprocess.Popen(command, cwd=project_root(), stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield int(server.stdout.readline())
    finally:
        server.kill()
        server.communicate()


def make_certificate(folder: Path) -> None:
    """An authority, and s.pem and s.key beside it, of the server that is reached as 127.0.0.1."""
    make_authority(folder)
    _openssl(folder, "req -newkey rsa:2048 -nodes -keyout s.key -out s.csr -subj /CN=server")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n")
    _openssl(folder, "x509 -req -in s.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out s.pem -extfile names")


def make_authority(folder: Path) -> Path:
    """The file of a new authority's certificate; its key is beside it."""
    folder.mkdir(exist_ok=True)
    usage = "-addext keyUsage=critical,keyCertSign,cRLSign"  # Python 3.13 asks for it
    _openssl(
        folder, f"req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority {usage}"
    )
    return folder / "ca.pem"


def _openssl(folder: Path, arguments: str) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("NO OPENSSL HERE, SO TLS IS NOT TESTED")
    subprocess.run(["openssl", *arguments.split()], cwd=folder, check=True, capture_output=True)


async def _serve(port: int, folder: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "s.pem", folder / "s.key")

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_pump(reader, back), _pump(there, writer))

    server = await asyncio.start_server(meet, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201  (whoever started us reads it)
    await server.serve_forever()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), Path(sys.argv[2])))
