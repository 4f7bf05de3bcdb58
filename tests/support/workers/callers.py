"""Callers of one deployment behind a proxy, which send requests while a test does something else."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from cli.demo.load.generator import Load, LoadSettings
from cli.demo.load.mix import Kind

GETS: Mapping[Kind, float] = {Kind.GET_CLOSE: 1.0}
POSTS: Mapping[Kind, float] = {Kind.POST_CLOSE: 1.0}
"""Requests that no proxy sends twice."""


@contextmanager
def running(load: Load) -> Iterator[Load]:
    """A load from its first answer, which may take long on a busy machine, to the end of the block."""
    load.start(patience=120)
    try:
        yield load
    finally:
        load.stop()


@contextmanager
def asked(url: str, host: str, mix: Mapping[Kind, float] = GETS) -> Iterator[Load]:
    """50 requests a second, each on a connection of its own. At the end each was answered, well or not."""
    settings = LoadSettings(address=url.removeprefix("http://"), host=host, rate=50, timeout=120, mix=mix)
    with running(Load(settings)) as load:
        yield load
    assert not load.tally.answers[0, ""], load.tally
