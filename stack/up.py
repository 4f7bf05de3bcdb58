"""`rollway up` and `rollway restart`: start a supervisor, and follow it until every part is up."""

import os
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from runtime.machine.identity import Identity, identify, is_alive
from runtime.machine.watchdog import tell
from stack.down import AT_WORK, end_parts, let_go, stop_stack
from stack.home.folder import Home, open_log, project_root
from stack.home.server_settings import load_settings
from stack.home.stack_state import PartState, StackState, read_state, write_state
from stack.part_specs import PLAN, StackPart, StackPlan
from stack.parts.processes import ProcessList, rollway_processes
from stack.parts.replica_accounts import advice
from stack.prepare import Notice, Say, UpRequest, decides, make_plan
from stack.stack_errors import StackError, folder_errors
from stack.stack_status import StackStatus, stack_status
from stack.supervisor.child.supervised import is_ready
from stack.supervisor.stop import stop_replicas
from stack.supervisor.supervise import leaving, one_at_a_time

# Kept, since a Popen that is forgotten before its process has ended warns.
_LAUNCHED: list[subprocess.Popen[bytes]] = []


def up(request: UpRequest, say: Say, processes: ProcessList = rollway_processes) -> StackStatus:
    """Start the stack of `request.home`, and return its status when it is up. It may be up already.

    Parts that run without a supervisor are taken over. `say` gets a notice when a part comes up. After an error or
    Ctrl-C nothing that was started is left, unless parts were taken over, which serve on, as kept replicas do. Raises
    StackError with one sentence.
    """
    home = request.home
    home.create()
    with one_at_a_time(home, lambda: say(AT_WORK)):
        state = read_state(home)
        if state is not None and is_alive(state.supervisor) and state.phase in {"starting", "running"}:
            if _opens_or_closes(home, request.ports.forwarded):
                let_go(state)
                return _bring_up(request, read_state(home), say, processes, ())
            say(Notice(part="stack", text="already running"))
            if sentence := advice(home):
                say(Notice(part="replicas", text=f"run as the workers' own user: {sentence}"))
            _say_unheard(request, state, say)
            follow(home, state.supervisor, say)
            return stack_status(home)
        let_go(state)  # one that is stopping
        return _bring_up(request, read_state(home), say, processes, ())


def restart(
    request: UpRequest, names: Collection[str], say: Say, processes: ProcessList = rollway_processes
) -> StackStatus:
    """Restart the parts of these names, one after the other, under a new supervisor; replicas keep running.

    Without names all but Envoy, which is restarted when its configuration has changed. Raises StackError: nothing
    runs, there is no such part, or one does not start again; then those after it run on as they are.
    """
    home = request.home
    nothing = StackError(f"Nothing is running in {home.root}: start it with 'rollway up'.")
    if not home.state_file.exists():
        raise nothing
    with one_at_a_time(home, lambda: say(AT_WORK)):
        state = read_state(home)
        if state is None or not state.alive:
            raise nothing
        ours = [part.name for part in state.parts if part.process is not None and not part.is_leaving]
        unknown = sorted(set(names) - set(ours))
        if unknown:
            raise StackError(f"There is no part {unknown[0]!r} to restart; there are {', '.join(ours)}.")
        let_go(state)
        usual = [part.name for part in state.parts if not part.carries_requests]
        return _bring_up(request, read_state(home), say, processes, names or usual)


def stay(home: Home, say: Say) -> None:
    """Return when somebody has stopped the stack of `home`; `say` gets a notice of each crash and restart.

    A parent process that wants to know, such as systemd, is told that the stack is ready, and that it is alive.
    """
    tell("READY=1")
    last: dict[str, tuple[str, int]] = {}
    while (status := _supervised(home, say)).supervisor_pid is not None:
        for part in status.parts:
            news = (part.state, part.restarts)
            if last.setdefault(part.name, news) != news:
                why = f": {part.error}" if part.error else ""
                say(Notice(part=part.name, text=f"{part.state}, {part.restarts} restarts{why}"))
            last[part.name] = news
        tell("WATCHDOG=1")
        time.sleep(0.5)


def _supervised(home: Home, say: Say) -> StackStatus:
    """The status, after a restart that is under way."""
    status = stack_status(home)
    if status.supervisor_pid is None:
        with one_at_a_time(home, lambda: say(AT_WORK)):
            status = stack_status(home)
    return status


def _bring_up(
    request: UpRequest, state: StackState | None, say: Say, processes: ProcessList, names: Collection[str]
) -> StackStatus:
    """Launch a supervisor for the running and the missing parts, and follow it."""
    home, alive = request.home, state.alive if state else ()
    serving = state is not None and state.phase == "serving"  # then replicas may run, also without a part
    if state is not None and (alive or serving):
        (_say_kept if serving else _say_unheard)(request, state, say)
        request = request.remembering(state)
    try:
        with ExitStack() as claims:
            plan = make_plan(request, processes, say, [part.name for part in alive], claims)
            takeover = take_over(plan.parts, _as_they_are(plan.parts, alive, home), names)
            if alive:
                say(
                    Notice(
                        part="stack", text=takeover.sentence if names else f"without a supervisor; {takeover.sentence}"
                    )
                )
            for part in takeover.kept:
                if part.is_leaving and part.name in {leaving(restarted.name) for restarted in takeover.restarted}:
                    still = "still hands over from the last restart; this one waits for its end"
                    say(Notice(part=part.name, text=still))
            end_parts(home, takeover.ended)
            plan = replace(
                plan,
                parts=_needed(plan.parts, [part.name for part in takeover.kept]),
                found=(*takeover.kept, *takeover.restarted),
                restart=tuple(part.name for part in takeover.restarted),
            )
            follow(home, _launch(home, plan), say, plan)
    except BaseException:
        if not alive:
            stop_stack(home, lambda _: None, None if serving else stop_replicas)
            if serving and state is not None:
                write_state(home, state)
        raise
    return stack_status(home)


def _opens_or_closes(home: Home, forwarded: Mapping[str, int]) -> bool:
    """Whether the ports of a running stack for its Unix sockets differ from these, as far as they are named."""
    settings = load_settings(home)
    return settings is not None and any(
        port != settings.ports.forwarded.get(name, 0) for name, port in forwarded.items()
    )


def _needed(parts: Sequence[StackPart], names: Collection[str]) -> tuple[StackPart, ...]:
    """Leave out parts that do their work and end, such as migrations, where nothing is started that comes after them.

    It takes its time on a busy machine, and may fail; what runs needs it no more.
    """
    after = {name for part in parts if part.name not in names for name in part.after}
    return tuple(part for part in parts if part.ready.kind != "exit" or part.name in after)


def _say_unheard(request: UpRequest, state: StackState, say: Say) -> None:
    if names := request.unheard(state.environment):
        keeps = "what runs keeps what it was started with; 'rollway down --keep-replicas' and 'rollway up' change it"
        say(Notice(part="settings", text=f"{', '.join(names)}: {keeps}"))


def _say_kept(request: UpRequest, state: StackState, say: Say) -> None:
    if names := sorted(state.environment.keys() - request.environment.keys()):
        say(Notice(part="settings", text=f"as before: {', '.join(names)}; set one to nothing to forget it"))


def _as_they_are(parts: Sequence[StackPart], states: Sequence[PartState], home: Home) -> list[PartState]:
    """The parts that were found; one that does not answer as it should does not count as running."""
    by_name = {part.name: part for part in parts}
    return [
        replace(part, condition=part.condition if _answers(by_name.get(part.name), part, home) else "starting")
        for part in states
    ]


def _answers(part: StackPart | None, state: PartState, home: Home) -> bool:
    if part is None or part.digest != state.digest or part.ready.kind in {"log", "exit"}:
        return True
    return is_ready(part.ready, home.log(part.name), 0)


def _launch(home: Home, plan: StackPlan) -> Identity:
    """Start the supervisor. It gets its plan when its pid is in the state file, so that `down` always finds it."""
    with folder_errors(home.root):
        log = open_log(home.log("supervisor"))
        process = subprocess.Popen(  # noqa: S603 -- ourselves
            [sys.executable, "-m", "stack.supervisor", str(home.root)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=project_root(),
            env={name: value for name, value in os.environ.items() if not decides(name)} | dict(plan.environment),
            start_new_session=True,
        )
        os.close(log)
        _LAUNCHED[:] = [earlier for earlier in _LAUNCHED if earlier.poll() is None] + [process]
        supervisor = identify(process.pid)
        if supervisor is None or process.stdin is None:
            raise ended_at_once(home)
        state = StackState(
            supervisor=supervisor,
            phase="starting",
            database_url=plan.database_url,
            redis_url=plan.redis_url,
            parts=plan.found,
            workers=plan.workers,
            environment=plan.environment,
        )
        write_state(home, state)
    try:
        process.stdin.write(PLAN.dump_json(plan))
        process.stdin.close()
    except BrokenPipeError:
        raise ended_at_once(home) from None
    return supervisor


_POLL = 0.05


def follow(home: Home, supervisor: Identity, say: Say, plan: StackPlan | None = None) -> None:
    """Give a notice of each part that comes up, until all have. Raises StackError when one does not.

    `plan` tells which parts were found running, and which of them are restarted.
    """
    printed: set[str] = set()
    while True:
        alive = is_alive(supervisor)  # asked before the file is read: what a supervisor writes last is not missed
        state = read_state(home)
        for part in state.parts if state else ():
            if part.name not in printed and (text := _news(part, plan)):
                printed.add(part.name)
                say(Notice(part=part.name, text=text, address=part.address))
        if state is not None and state.failure:
            raise StackError(state.failure)
        if state is not None and state.phase == "running":
            return
        if not alive or state is None or state.phase != "starting":
            raise ended_at_once(home)
        time.sleep(_POLL)


def ended_at_once(home: Home) -> StackError:
    """The error of a supervisor that is gone before all was up."""
    return StackError(f"The stack was stopped before it was up; {home.log('supervisor')} says more.")


def _news(part: PartState, plan: StackPlan | None) -> str:
    """The news of a part; empty while it is on its way."""
    if part.condition not in {"running", "done", "external"}:
        return ""
    before = next((state.process for state in plan.found if state.name == part.name), None) if plan else None
    if plan is None or before is None:
        return part.condition
    if part.name not in plan.restart:
        return "kept"
    return "restarted" if part.process != before else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """`kept` and `restarted` keep serving; of `restarted` each ends when its turn comes.

    `ended` are ended at once.
    """

    kept: tuple[PartState, ...]
    restarted: tuple[PartState, ...]
    ended: tuple[PartState, ...]

    @property
    def sentence(self) -> str:
        """The plan in words, for people, before it happens."""
        sentences = (
            ("kept", self.kept),
            ("restarted one after the other", self.restarted),
            ("ended, since they did not run well or are not wanted", self.ended),
        )
        return "; ".join(f"{words}: {', '.join(part.name for part in parts)}" for words, parts in sentences if parts)


def take_over(planned: Sequence[StackPart], states: Sequence[PartState], restart: Collection[str]) -> Takeover:
    """Sort the running parts by their fate. `restart`: the names of parts to restart.

    it is leaving its place to another -> kept, until it ends by itself
    no part of that name is wanted     -> ended
    it was not up when last seen       -> ended, and started again with what is missing
    it is to be restarted              -> restarted
    it was started from another plan   -> restarted
    else                               -> kept
    """
    parts = {part.name: part for part in planned}
    leaving = [part for part in states if part.is_leaving]
    running = [part for part in states if part.name in parts and part.condition == "running"]
    restarted = [part for part in running if part.name in restart or part.digest != parts[part.name].digest]
    return Takeover(
        kept=tuple(part for part in states if part in leaving or (part in running and part not in restarted)),
        restarted=tuple(restarted),
        ended=tuple(part for part in states if part not in running and part not in leaving),
    )
