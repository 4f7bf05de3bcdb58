"""Who has not been heard of: without a worker nothing moves, whatever was asked for."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from rich.console import Console

from cli.output import duration, printer
from cli.servers import Reader
from db.views.signs import SignsOfLife, signs_of_life

_SILENT = timedelta(seconds=5)


def missing_worker(signs: SignsOfLife) -> str:
    """A sentence when no worker does anything; empty when one does."""
    if signs.worker is None:
        return "no worker has been heard of yet, so nothing is started or stopped; 'rollway up' starts some"
    if not _is_silent(signs.worker, signs.now):
        return ""
    since = duration(signs.now - signs.worker)
    return f"no worker has been heard of for {since}, so nothing is started, probed or stopped; does one run?"


def silent_parts(signs: SignsOfLife) -> Iterator[str]:
    """A sentence for each part that was heard of before and is silent, and for workers also when none ever was."""
    if sentence := missing_worker(signs):
        yield sentence
    if signs.api is not None and _is_silent(signs.api, signs.now):
        since = duration(signs.now - signs.api)
        yield f"the server for proxies (api) has not been heard of for {since}: proxies go on with what they know"


def warn_of_missing_worker(reader: Reader, console: Console) -> None:
    """After a command: what was asked for is stored, and waits. Nothing is said where `console` is quiet."""
    if sentence := missing_worker(reader.read(signs_of_life)):
        printer(stderr=True, quiet=console.quiet).print(f"note: {sentence}", style="yellow")


def _is_silent(last: datetime, now: datetime) -> bool:
    return now - last > _SILENT
