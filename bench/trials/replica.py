"""A replica that answers as its world says: what fails, hangs, is reset or takes long is in FAULTS, a JSON object.

    share, of       which part of the requests (1: all), of which method ("": any), the fault befalls
    fault           reset | hang | late (500 after `after` seconds) | a status, such as 500
    takes, mean     seconds that each answer takes; or exponentially long ones, with this mean
    idle            a connection that was idle for so many seconds is closed
    away            a file: while it is there, everything is answered by 503

It listens on PORT, answers /health, and is up after STARTUP_SECONDS. SIGTERM: what is under way is answered.
"""

import asyncio
import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

STARTED = time.monotonic()
STARTUP_SECONDS = float(os.environ.get("STARTUP_SECONDS", "0"))
FAULTS: dict[str, Any] = json.loads(os.environ.get("FAULTS", "{}"))
FOR_EVER = 3600.0
stopping = asyncio.Event()
under_way: set[object] = set()
nobody = asyncio.Event()
nobody.set()


async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection: requests one after the other."""
    try:
        while not stopping.is_set():
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), FAULTS.get("idle"))
            request = object()
            under_way.add(request)
            nobody.clear()
            try:
                if not await _answer(head, reader, writer):
                    break
            finally:
                under_way.discard(request)
                if not under_way:
                    nobody.set()
    except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def is_away() -> bool:
    """Whether what all of them need is away just now."""
    return "away" in FAULTS and Path(FAULTS["away"]).exists()


async def _answer(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Whether the connection goes on."""
    lines = head.lower().split(b"\r\n")
    length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
    await reader.readexactly(length)
    if b" /health " in lines[0]:
        return await _send(writer, 200 if time.monotonic() - STARTED >= STARTUP_SECONDS else 503)
    if is_away():
        return await _send(writer, 503)
    of = FAULTS.get("of", "").lower().encode()
    if lines[0].startswith(of) and random.random() < FAULTS.get("share", 0):
        return await _spoil(writer, FAULTS["fault"])
    mean = FAULTS.get("mean")
    await asyncio.sleep(random.expovariate(1 / mean) if mean else FAULTS.get("takes", 0))
    return await _send(writer, 200)


async def _spoil(writer: asyncio.StreamWriter, fault: str | int) -> bool:
    match fault:
        case "reset":
            writer.transport.abort()
            return False
        case "hang":
            await asyncio.sleep(FOR_EVER)
        case "late":
            await asyncio.sleep(FAULTS["after"])
            return await _send(writer, 500)
    return await _send(writer, int(fault))


async def _send(writer: asyncio.StreamWriter, status: int) -> bool:
    writer.write(f"HTTP/1.1 {status} x\r\nContent-Length: 2\r\n\r\nok".encode())
    await writer.drain()
    return True


async def main() -> None:
    """Until SIGTERM, and then until what is under way is answered."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    server = await asyncio.start_server(conversation, "127.0.0.1", int(os.environ["PORT"]))
    await stopping.wait()
    server.close()
    await nobody.wait()


if __name__ == "__main__":
    asyncio.run(main())
