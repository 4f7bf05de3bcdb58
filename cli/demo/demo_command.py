"""`rollway demo`: its output and promises; the acts are in `cli.demo.acts`."""

import os
import secrets
import time
from dataclasses import asdict
from typing import Any

import httpx
import typer
from rich.console import Console

from cli.client import Reader
from cli.demo.acts import ACTS, canary_in_words, canary_met, leave
from cli.demo.demo_run import Demo, demo_load
from cli.demo.load.tally import Tally
from cli.demo.stage import DemoStage, open_stage
from cli.options import AsJson
from cli.terminal.exits import interruptible
from cli.terminal.output import print_json, printer
from domain.text.errors import RollwayError


def demo(*, as_json: AsJson = False) -> None:
    """Show a real rollout, a rollback and a canary, under load. Takes under a minute and leaves nothing behind.

    A stack of its own in a temporary folder (DATABASE_URL and REDIS_URL are used when they are set), 3 replicas of
    examples/http_service.py, a rollout to a second revision, one to a broken revision that is rolled back, and a canary
    that fails every fifth request until its judge aborts it. Requests go through Envoy all the time, and each must be
    answered, except for those that the canary fails. Exit code 0 only if everything was as promised; otherwise the logs
    are kept, and their folder is printed.
    """
    console = printer(stderr=as_json)
    external = os.environ.get("DATABASE_URL") or os.environ.get("REDIS_URL")
    name = f"demo-{secrets.token_hex(3)}" if external else "demo"
    if external:  # workers of the same machine that use the same servers must not take these replicas for theirs
        os.environ["ROLLWAY_HOST"] = name
    began = time.monotonic()
    with interruptible(), open_stage(console) as stage:
        run = _perform(stage, name, console)
    run.promise(
        "nothing is left running",
        kept=not stage.leftovers,
        seen=", ".join(stage.leftovers) or "every process has ended",
    )
    seconds = time.monotonic() - began
    is_kept = all(promise.kept for promise in run.promises)
    if as_json:
        print_json(_document(run, stage, seconds, is_kept=is_kept))
    _summary(run, stage, seconds, is_kept=is_kept)
    if not is_kept:
        raise typer.Exit(1)


def _perform(stage: DemoStage, name: str, console: Console) -> Demo:
    """All acts until one fails; a refusal or an endless wait is a broken promise."""
    with Reader() as reader:
        run = Demo(console, reader, name, demo_load(stage.envoy, name))
        try:
            for title, act in ACTS:
                run.console.print(f"\n{title}", style="bold")
                act(run)
        except RollwayError as error:
            run.promise(title.partition(";")[0], kept=False, seen=error.message)
        finally:
            stage.keep = not all(promise.kept for promise in run.promises)
            leave(run)
    return run


def _summary(run: Demo, stage: DemoStage, seconds: float, *, is_kept: bool) -> None:
    run.say()
    for promise in run.promises:
        mark, colour = ("✓", "green") if promise.kept else ("✗", "red")
        run.console.print(f"{mark} {promise.promise}: {promise.seen}", style=colour)
    good = f"All as promised, in {seconds:.0f} s. {canary_in_words(run)}; no other failed."
    end = good if is_kept else f"Not as promised; the logs are in {stage.logs}"
    run.say(f"\n{end}")


def _document(run: Demo, stage: DemoStage, seconds: float, *, is_kept: bool) -> dict[str, Any]:
    return {
        "ok": is_kept,
        "seconds": round(seconds, 1),
        "promises": [asdict(promise) for promise in run.promises],
        "films": {
            title: [{"picture": cycle.picture, "did": cycle.did or "wait", "why": cycle.why} for cycle in cycles]
            for title, cycles in run.films.items()
        },
        "answers": run.answers,
        "canary": {"judge": run.verdict, **canary_met(run)},
        "load": load_document(run.load.tally),
        "logs": None if is_kept else stage.logs,
    }


def load_document(tally: Tally) -> dict[str, Any]:
    """The results of the requests, for programs."""
    return {
        "requests": tally.requests,
        "failed": tally.failed.total(),
        "failures": dict(tally.failed),
        "revisions": tally.by_revision(httpx.codes.OK),
        "faults": tally.by_revision(httpx.codes.INTERNAL_SERVER_ERROR),
        "worst_seconds": round(max(tally.latencies, default=0.0), 3),
    }
