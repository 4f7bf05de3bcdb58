"""`rollway receipt`."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

import typer

from cli.completing import deployments_offered
from cli.options import AsJson
from cli.servers import Reader
from cli.terminal.exits import ExitCode
from cli.terminal.output import print_json, printer
from db.audit.shown import ReceiptView
from domain.commands.base import DEPLOYMENT
from domain.foresight.receipts.receipt import Seal
from domain.words.errors import RolloutNotFoundError
from domain.words.numbers import duration

Rollout = Annotated[
    str,
    typer.Argument(
        metavar="ROLLOUT",
        help="Its id; or a deployment, of which the last one is shown.",
        autocompletion=deployments_offered,
    ),
]


def receipt(*, rollout: Rollout, as_json: AsJson = False) -> None:
    """Show what a rollout promised, and what it did, from the steps that are on record.

    A worker seals the receipt within a minute after the end: with its SHA-256, and with that of the receipt before of
    the same deployment. From then on it is shown as it was sealed, also when the rollout itself is forgotten.

    Exit code 1 when it, or the one before, was changed since.
    """
    with Reader() as reader:
        found = reader.view(ReceiptView, *_of(rollout))
        deviations = _deviations(reader, found.receipt["rollout"])
    if as_json:
        print_json({**asdict(found), "deviations": deviations})
    else:
        printer().print(receipt_page(found.receipt, found.seal, deviations))
    if found.seal is not None and (not found.seal.is_intact or found.seal.is_joined is False):
        raise typer.Exit(ExitCode.REFUSED)


def _of(given: str) -> tuple[str, str]:
    """The path of the receipt of an id, or of the last one of a deployment, and what it names."""
    try:
        return "/v1/rollouts/{rollout}/receipt", str(UUID(given))
    except ValueError:
        return f"{DEPLOYMENT}/receipt", given


def _deviations(reader: Reader, rollout: str) -> list[str]:
    """Return what came otherwise than planned, as far as the rollout's rows are kept."""
    with suppress(RolloutNotFoundError):
        return list(reader.ask("/v1/rollouts/{rollout}/plan", rollout)["deviations"])
    return []


def receipt_page(receipt: dict[str, Any], seal: Seal | None, deviations: Sequence[str]) -> str:
    """The whole of it."""
    before, after = (_head, _promises, _waves), (_waits, _acts)
    first, last = ([line for part in parts for line in part(receipt)] for parts in (before, after))
    return "\n".join((*first, *_otherwise(deviations), *last, *_seal(seal)))


def _head(receipt: dict[str, Any]) -> Iterator[str]:
    yield f"# {receipt['deployment']}: {receipt['from']} → {receipt['to']}, {_outcome(receipt)}"
    yield ""
    why = f" ({receipt['reason']})" if receipt["reason"] else ""
    took = f", {duration(timedelta(seconds=receipt['seconds']))}" if receipt["seconds"] is not None else ""
    yield f"Rollout {receipt['rollout']}, {receipt['policy']['strategy']}, by {receipt['actor']}{why}"
    yield f"{receipt['started_at']} to {receipt['ended_at'] or 'now'}{took}"
    if receipt["back_reason"]:
        yield f"turned back: {receipt['back_reason']}"


def _outcome(receipt: dict[str, Any]) -> str:
    return str(receipt["outcome"] or "under way").replace("_", " ")


def _promises(receipt: dict[str, Any]) -> Iterator[str]:
    promised, measured, replayed = receipt["promised"], receipt["measured"], receipt["replayed"]
    yield from _table("promised", "measured", "")
    if measured is not None:
        both = promised["counts_stopping"]
        most = measured["most_live_and_stopping" if both else "most_live"]
        which = "live or stopping" if both else f"live, {measured['most_stopping']} stopping beside them"
        kept = _kept(ok=measured["is_ceiling_kept"])
        yield _row(f"at most {promised['most_live']} live", f"at most {most} {which}", kept)
        least, seen = promised["fewest_serving"], measured["fewest_serving"]
        kept = _kept(ok=measured["is_floor_kept"])
        yield _row(f"at least {least} serving by our own doing", f"at least {seen} serving", kept)
    refused = f", {replayed['refused']} refused by Postgres" if replayed["refused"] else ""
    again = f"{replayed['equal']} of {replayed['steps']} come out the same{refused}"
    yield _row("each step can be decided again", again, _kept(ok=not replayed["differing"]))
    yield _row("requests", receipt["requests"]["said"], "")


def _waves(receipt: dict[str, Any]) -> Iterator[str]:
    yield from _table("wave", "begins", "takes", "replicas", "what and why")
    for wave in receipt["waves"]:
        takes = "-" if wave["took_seconds"] is None else f"{wave['took_seconds']:.1f} s"
        begins = f"{wave['begins_seconds']:.1f} s"
        yield _row(str(wave["number"]), begins, takes, wave["picture"], wave["why"])


def _otherwise(deviations: Sequence[str]) -> Iterator[str]:
    if deviations:
        yield from ("", "Otherwise than planned:", "")
    for deviation in deviations:
        yield f"- {deviation}"


def _waits(receipt: dict[str, Any]) -> Iterator[str]:
    if receipt["waits"]:
        yield from _table("after wave", "waited", "for", "reason")
    for wait in receipt["waits"]:
        yield _row(str(wait["after_wave"]), f"{wait['seconds']:.1f} s", wait["waits_for"], wait["reason"])


def _acts(receipt: dict[str, Any]) -> Iterator[str]:
    if receipt["acts"]:
        yield from _table("when", "who", "what", "said")
    for act in receipt["acts"]:
        yield _row(act["at"], act["actor"], act["what"], act["said"])


def _seal(seal: Seal | None) -> Iterator[str]:
    yield ""
    if seal is None:
        yield "Not sealed yet: a worker does it within a minute after the end."
        return
    intact = "intact" if seal.is_intact else "CHANGED since it was sealed"
    yield f"Receipt {seal.number}, sha256 {seal.sha256}: {intact}"
    match seal.is_joined:
        case None:
            yield "the one before is not kept, or there is none"
        case joined:
            yield f"the one before, sha256 {seal.previous_sha256}: {'intact' if joined else 'CHANGED since then'}"


def _kept(*, ok: bool) -> str:
    return "kept" if ok else "**broken**"


def _table(*names: str) -> Iterator[str]:
    yield from ("", _row(*names), f"|{'---|' * len(names)}")


def _row(*cells: str) -> str:
    """Escape what Markdown would take for a border."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
