"""Tells systemd, where it asks, that this process is alive: a hanging one is killed then, and started again."""

import asyncio
import os
import socket
import threading
import time

_SHARE = 1 / 3
_MOST_SECONDS = 60.0


def tell(state: str) -> None:
    """Tell systemd: READY=1, WATCHDOG=1. Without a listener nothing is sent, and nothing is waited for."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as listener:
        try:
            listener.sendto(state.encode(), address.replace("@", "\0", 1))
        except OSError:
            return


def pause() -> float | None:
    """The seconds between two signs of life; None where systemd asks this process for none."""
    usec, of = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not usec.isdecimal() or of not in ("", str(os.getpid())):
        return None
    return min(_MOST_SECONDS, int(usec) / 1e6 * _SHARE)


async def stay_alive() -> None:
    """Report life from an event loop, until cancelled: a hanging loop reports nothing."""
    while (seconds := pause()) is not None:
        tell("WATCHDOG=1")
        await asyncio.sleep(seconds)


def keep_alive() -> None:
    """Report life from a thread, as long as this process runs: a frozen process reports nothing."""
    if (seconds := pause()) is not None:
        threading.Thread(target=_keep_alive, args=(seconds,), name="watchdog", daemon=True).start()


def _keep_alive(seconds: float) -> None:
    while True:
        tell("WATCHDOG=1")
        time.sleep(seconds)
