"""`python -m stack.forward PATH`: connections to the handed socket are forwarded to the Unix socket PATH."""

import asyncio
import os
import sys
from contextlib import suppress

from runtime.machine.free_ports import handed_socket

_AT_ONCE = 1000
_CHUNK = 65_536


async def forward(path: str) -> None:
    """Serve until cancelled. Without a listener at PATH the caller's connection is closed."""
    handed = handed_socket(os.environ)
    if handed is None:
        sys.exit("ROLLWAY_SOCKET names no socket: 'rollway up' starts this, with a port such as --redis-port 6379")
    places = asyncio.Semaphore(_AT_ONCE)

    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with places:
            with suppress(OSError):
                await _pass_on(reader, writer, *await asyncio.open_unix_connection(path))
            writer.close()

    server = await asyncio.start_server(lead, sock=handed)
    await server.serve_forever()


async def _pass_on(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    other_reader: asyncio.StreamReader,
    other_writer: asyncio.StreamWriter,
) -> None:
    """Copy both ways until one side has closed its connection: neither Postgres nor Redis closes half of one."""
    ways = (_copy(reader, other_writer), _copy(other_reader, writer))
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        other_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(forward(sys.argv[1]))
