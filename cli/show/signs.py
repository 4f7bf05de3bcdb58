"""Says who is waited for: an unheard-of worker, without whom nothing moves, or a person who must say so."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from rich.console import Console

from cli.reads import deployment_named, signs_of_life
from cli.servers import Reader
from cli.terminal.output import printer
from db.views.deployment_view import DeploymentView
from db.views.fleet.signs import SignsOfLife
from domain.replicas.silence import BEAT_MISSED_AFTER, MISSED_AFTER
from domain.words.numbers import duration
from runtime.machine.files import named, stuck_holder_of
from stack.errors import StackError
from stack.home.folder import find_home


def silent_parts(signs: SignsOfLife) -> Iterator[str]:
    """A sentence for each part that was heard of before and is silent, and for workers also when none ever was.

    And one for replicas that are not kept apart from the workers.
    """
    if sentence := signs.missing_worker:
        yield sentence
    elif signs.beat is not None and signs.now - signs.beat > BEAT_MISSED_AFTER:
        since = duration(signs.now - signs.beat)
        yield f"no tick of beat has reached a worker for {since}: what waits for a time waits; do beat and Redis run?"
    if signs.api is not None and signs.now - signs.api > MISSED_AFTER:
        since = duration(signs.now - signs.api)
        yield f"the server for proxies (api) has not been heard of for {since}: proxies go on with what they know"
    yield from missing_walls(signs)


def missing_walls(signs: SignsOfLife) -> Iterator[str]:
    """A sentence when replicas are not kept apart from the workers, with what stands in the way on this machine."""
    if sentence := signs.missing_wall:
        from stack.parts.wall import advice  # noqa: PLC0415 -- only where it is missing, and others shall start fast

        way = ""
        with suppress(StackError):  # its files are somebody else's
            way = advice(find_home(os.environ))
        yield f"{sentence}; here {way}" if way else sentence


def held_up() -> Iterator[str]:
    """A sentence where one process of this machine holds up all starts and stops of replicas here."""
    with suppress(StackError):  # its files are somebody else's
        lock = find_home(os.environ).replicas_lock
        if pid := stuck_holder_of(lock):
            yield f"{named(pid)} holds {lock}: no replica of this host is started or stopped until it lets go or ends"


def waits_for_person(view: DeploymentView) -> str:
    """Say what a person must type before it goes on; empty when it waits for nobody."""
    return f"waits for you: rollway {view.waits_for} {view.name}" if view.waits_for else ""


def warn_of_missing_worker(reader: Reader, console: Console) -> None:
    """After a command: what was asked for is stored, and waits. Nothing is said where `console` is quiet."""
    if sentence := signs_of_life(reader).missing_worker:
        printer(stderr=True, quiet=console.quiet).print(f"note: {sentence}", style="yellow")


def warn_of_doubts(reader: Reader, names: Iterable[str], console: Console) -> None:
    """After activations: whose new rollout has a judge that proxies do not tell enough, or that may err more often."""
    from domain.cycle.evaluator import EVALUATOR  # noqa: PLC0415 -- after activations only, and status shall start fast

    for name in names:
        view = deployment_named(reader, name)
        rollout = view.rollout
        if rollout is None or not rollout.spec.get("judge"):
            continue
        missing = signs_of_life(reader).missing_evidence
        policy = rollout.snapshot.policy
        sentences = EVALUATOR.strategy_of(policy).cautions(policy.spec, view.desired_replicas, ahead=False)
        for sentence in filter(None, (missing, *sentences)):
            printer(stderr=True, quiet=console.quiet).print(f"note: {name}: {sentence}", style="yellow")


def warn_of_hosts_passed_over(results: Iterable[Mapping[str, Any]], console: Console) -> None:
    """After an activation: who gets no replicas of the revision, since a secret is missing there."""
    for result in results:
        for host, lacks in result.get("passed_over", {}).items():
            note = f"note: host {host} gets no replicas of {result['revision']}: it lacks {lacks}"
            printer(stderr=True, quiet=console.quiet).print(note, style="yellow")
