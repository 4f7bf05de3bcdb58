"""A replica that speaks HTTP/2 alone, as gRPC servers do: in a thread of a test, or as a program given its port.

It says which revision it is, and x-spoken: HTTP/2; /broken gets 503. A call of gRPC is answered UNAVAILABLE.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
from h2.exceptions import ProtocolError

BODY = b'{"revision": "%s"}' % os.environ.get("ROLLWAY_REVISION", "").encode()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    connection = H2Connection(H2Configuration(client_side=False))
    connection.initiate_connection()
    try:
        writer.write(connection.data_to_send())
        while data := await reader.read(65_536):
            for event in connection.receive_data(data):
                if isinstance(event, RequestReceived):
                    answer(connection, event)
            writer.write(connection.data_to_send())
            await writer.drain()
    except (ProtocolError, ConnectionError):
        pass  # who speaks otherwise is hung up on
    finally:
        writer.close()


def answer(connection: H2Connection, request: RequestReceived) -> None:
    headers = dict(request.headers or ())
    spoken = ("x-spoken", "HTTP/2")
    if headers.get(b"content-type") == b"application/grpc":
        head = [(":status", "200"), ("content-type", "application/grpc"), ("grpc-status", "14"), spoken]
        connection.send_headers(request.stream_id, head, end_stream=True)
        return
    status = "503" if headers[b":path"] == b"/broken" else "200"
    kind, length = ("content-type", "application/json"), ("content-length", str(len(BODY)))
    connection.send_headers(request.stream_id, [(":status", status), kind, length, spoken])
    connection.send_data(request.stream_id, BODY, end_stream=True)


@contextmanager
def http2_replica() -> Iterator[str]:
    """Its address."""
    address, over = Future[str](), threading.Event()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address.set_result("{}:{}".format(*server.sockets[0].getsockname()))
        await asyncio.to_thread(over.wait)
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        yield address.result(10)
    finally:
        over.set()
        thread.join()


async def main() -> None:
    server = await asyncio.start_server(serve, os.environ.get("HOST", "127.0.0.1"), int(sys.argv[1]))
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    await over.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
