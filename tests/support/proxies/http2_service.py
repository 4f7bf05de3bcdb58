"""A service that speaks HTTP/2 alone, from the first byte on, and says which revision it is; it is given its port."""

import asyncio
import os
import signal
import sys
from contextlib import suppress

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
from h2.exceptions import ProtocolError

BODY = b'{"revision": "%s"}' % os.environ["ROLLWAY_REVISION"].encode()
HEAD = [(":status", "200"), ("content-type", "application/json"), ("content-length", str(len(BODY)))]


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    connection = H2Connection(H2Configuration(client_side=False))
    connection.initiate_connection()
    with suppress(ProtocolError, ConnectionError):  # who speaks otherwise is hung up on
        writer.write(connection.data_to_send())
        while data := await reader.read(65_536):
            for event in connection.receive_data(data):
                if isinstance(event, RequestReceived):
                    connection.send_headers(event.stream_id, HEAD)
                    connection.send_data(event.stream_id, BODY, end_stream=True)
            writer.write(connection.data_to_send())
            await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, os.environ.get("HOST", "127.0.0.1"), int(sys.argv[1]))
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    await over.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
