"""`rollway slots`: how many workers may share a handler, while they run."""

from typing import Annotated

import typer

from cli.options import AsJson
from cli.servers import find_servers
from cli.terminal.exits import UnreachableError
from cli.terminal.notes import look_at_redis
from cli.terminal.output import print_json, printer


def slots(
    *,
    count: Annotated[
        int | None, typer.Argument(metavar="N", min=1, max=64, help="The new number.", show_default=False)
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Each worker by its own ROLLWAY_SLOTS again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show or set how many workers may share a handler. All keep to it within a second.

    A worker that finds more to do than fits into one chunk asks others for help, up to this number.
    """
    from redis.exceptions import RedisError  # noqa: PLC0415  (Celery's imports take a second, which --help can save)

    from tasks.redis.locks import ask_for_slots, slots_asked_for  # noqa: PLC0415
    from tasks.worker.connections import redis_client  # noqa: PLC0415

    if reset and count is not None:
        raise typer.BadParameter("N and --reset do not go together")
    find_servers()
    try:
        look_at_redis()
        if reset or count is not None:
            ask_for_slots(redis_client(), count)
        count = slots_asked_for(redis_client())
    except RedisError as error:
        raise UnreachableError(f"Redis does not answer: {error}") from None
    if as_json:
        return print_json({"slots": count})
    own = "each worker goes by its own ROLLWAY_SLOTS (1, if not set)"
    return printer().print(own if count is None else f"{count} for each handler")
