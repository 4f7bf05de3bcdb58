"""What the pages work with, put together once for each app."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, Self
from uuid import UUID

from fastapi import Depends, Request
from sqlalchemy import Engine

from api.names import Names
from api.notices import Notices
from api.observed import Observed
from api.polls import Polls
from api.publisher import Publisher
from api.recorder import Recorder
from api.whole_tables import WholeTables


@dataclass(frozen=True, slots=True)
class Parts:
    """They belong to the event loop that they are made in."""

    publisher: Publisher
    recorder: Recorder
    polls: Polls
    whole_tables: WholeTables
    notices: Notices
    names: Names
    observed: Observed
    loop: asyncio.AbstractEventLoop

    @classmethod
    def put_together(cls, engine: Engine, redis_url: str, on_release: Callable[[frozenset[UUID]], None]) -> Self:
        """All of them, not working yet."""
        observed, names = Observed(), Names()
        publisher = Publisher(engine, names, observed)
        recorder = Recorder(engine, publisher, observed, on_release)
        return cls(
            publisher=publisher,
            recorder=recorder,
            polls=Polls(publisher, recorder, observed),
            whole_tables=WholeTables(publisher, recorder),
            notices=Notices(redis_url, publisher.look),
            names=names,
            observed=observed,
            loop=asyncio.get_running_loop(),
        )

    @property
    def work(self) -> list[Coroutine[Any, Any, None]]:
        """What goes on while the app serves."""
        return [self.publisher.run(), self.recorder.run(), self.notices.run(), self.names.run(self.publisher.look)]


def parts_of(request: Request) -> Parts:
    """The parts of the app that serves this request."""
    parts = request.app.state.parts
    assert isinstance(parts, Parts)  # noqa: S101  (narrows the type)
    return parts


TheParts = Annotated[Parts, Depends(parts_of)]
