"""Every statement that the connections of an engine send."""

from typing import Any, ClassVar, Self

import psycopg
from sqlalchemy import Engine, event

from db.unreachable import AnsweredCursor


class RememberingCursor(AnsweredCursor):
    """It keeps what it sends in `sent`, which all of them share."""

    sent: ClassVar[list[Any]] = []

    def execute(self, query: Any, *arguments: Any, **options: Any) -> Self:
        if query not in (";", "BEGIN", "COMMIT"):  # the pool's ping, and the transaction itself
            self.sent.append(query)
        return super().execute(query, *arguments, **options)

    def copy(self, statement: Any, *arguments: Any, **options: Any) -> Any:
        self.sent.append(statement)
        return super().copy(statement, *arguments, **options)


def sent_by(engine: Engine) -> list[Any]:
    """The statements from now on, as they are sent."""

    @event.listens_for(engine, "connect")
    def remember(connection: psycopg.Connection, _: object) -> None:
        connection.cursor_factory = RememberingCursor

    engine.dispose()
    RememberingCursor.sent.clear()
    return RememberingCursor.sent
