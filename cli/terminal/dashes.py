"""What stands behind `--` on a command line, kept apart from what stands before it."""

from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from typer._click import Context

_KEPT = "rollway.behind_dashes"


class TakesCommand(TyperCommand):
    """A command that takes another command behind `--`, however many arguments stand before it."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Only what stands before the first `--` is read here."""
        place = args.index("--") if "--" in args else len(args)
        ctx.meta[_KEPT] = tuple(args[place + 1 :])
        return super().parse_args(ctx, args[:place])

    def collect_usage_pieces(self, ctx: "Context") -> list[str]:
        """As the help shows it."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


def behind_dashes(context: typer.Context) -> tuple[str, ...]:
    """The words behind `--`; none of them where it was left out."""
    kept: Any = context.meta.get(_KEPT, ())
    return tuple(kept)
