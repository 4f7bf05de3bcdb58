"""The process of a part: started so that none is left behind, or watched by a supervisor that is not its parent."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any

from runtime.machine.free_ports import SOCKET
from runtime.machine.identity import Identity, identify, is_alive, send
from stack.part_specs import StackPart


class AdoptedProcess:
    """Replaces a Popen for a process that is no child of the supervisor."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._end = _descriptor(identity)

    @property
    def end(self) -> int | None:
        """A descriptor that becomes readable when it ends; None where the system has none."""
        return self._end

    def poll(self) -> int | None:
        """None while it runs."""
        if is_alive(self._identity):
            return None
        if self._end is not None:
            os.close(self._end)
            self._end = None
        return _ENDED

    def wait(self, timeout: float) -> int:
        """Return when it has ended. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("adopted", timeout)
            time.sleep(_POLL)
        return _ENDED

    def kill(self) -> None:
        """Send SIGKILL; nothing happens when it has ended."""
        send(self._identity, signal.SIGKILL)


def _descriptor(identity: Identity) -> int | None:
    """Open one for a process that runs now; Linux alone has it."""
    with suppress(AttributeError, OSError):
        descriptor: int = os.pidfd_open(identity.pid)
        if is_alive(identity):
            return descriptor
        os.close(descriptor)
    return None


Process = subprocess.Popen[bytes] | AdoptedProcess

# The program waits in a shell until its pid is written down: the process that starts it may die at any moment, and the
# shell then ends at the end of its input. A pid, and its creation time, stay the same through exec.
_GATE = ("/bin/sh", "-c", 'read -r go && exec "$@" </dev/null')

# Envoy that can be restarted while it serves ends when its parent does, so its parent is a shell that ends at once:
# what it starts in the background is nobody's child. It tells the pid.
_ORPHAN_GATE = ("/bin/sh", "-c", 'exec 3<&0; { read -r go <&3 && exec "$@" </dev/null 3<&-; } >&2 & echo $!')


def spawn(
    part: StackPart, epoch: int, output: int, listening: int | None = None
) -> tuple[Process, Identity | None, IO[bytes] | None]:
    """Start a part, which does nothing before `open_gate` of its gate, the last of the three.

    `epoch`: the hot restarts before this one; `output`: a descriptor for what it prints; `listening`: of the socket
    that is kept for it. Raises OSError and subprocess.SubprocessError.
    """
    handed = {} if listening is None else {SOCKET: str(listening)}
    setting: Mapping[str, Any] = {
        "stdin": subprocess.PIPE,
        "stderr": output,
        "cwd": part.cwd,
        "env": {**(os.environ if part.inherit_env else {}), **part.env, **handed},
        "pass_fds": () if listening is None else (listening,),
        "user": part.user,
        "group": part.user,
        "extra_groups": None if part.user is None else [],
        "start_new_session": True,
    }
    if part.hot_restart:
        return _spawn_orphan([*_ORPHAN_GATE, part.name, *part.command, "--restart-epoch", str(epoch)], setting)
    command = [*_GATE, part.name, *part.command]
    process = subprocess.Popen(command, stdout=output, **setting)  # noqa: S603 -- the plan says what is to be run
    return process, identify(process.pid), process.stdin


def open_gate(gate: IO[bytes] | None) -> None:
    """Let the process begin, now that its pid is written down."""
    if gate is None:
        return
    try:
        gate.write(b"go\n")
        gate.close()
    except OSError:  # it is gone already, which `Child.check` finds
        return


def _spawn_orphan(command: list[str], setting: Mapping[str, Any]) -> tuple[Process, Identity | None, IO[bytes] | None]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, **setting) as shell:  # noqa: S603
        line, gate = shell.stdout.readline() if shell.stdout else b"", shell.stdin
        shell.stdin = None  # it is the gate of what the shell started
    identity = identify(int(line or 0))
    if identity is None:
        raise subprocess.SubprocessError("it ended before it began")
    return AdoptedProcess(identity), identity, gate


_POLL = 0.02
_ENDED = 255  # its exit code is its parent's to know
