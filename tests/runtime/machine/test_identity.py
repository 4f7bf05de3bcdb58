"""Is it the same process? Asked after pids were used again, after a reboot, and of zombies."""

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

from runtime.machine.identity import identify, is_alive, is_unreaped, kill_if_stopped, send
from tests.support.stack.server_process import suspend
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import SLEEPER


def test_a_process_is_itself_and_no_other_that_has_its_pid() -> None:
    me = identify(os.getpid())
    assert me
    assert is_alive(me)
    for other in (replace(me, started=me.started - 1), replace(me, boot="an earlier boot"), replace(me, pid=2**22 + 1)):
        assert not is_alive(other)
        assert not is_unreaped(other)
        send(other, signal.SIGKILL)
    assert not is_alive(None)


def test_a_start_is_counted_from_the_boot_so_that_setting_the_clock_changes_nothing() -> None:
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    with subprocess.Popen(SLEEPER) as child:
        found = identify(child.pid)
        child.kill()
    assert found
    assert 0 <= found.started - uptime < 5


def test_a_zombie_has_ended_and_keeps_its_pid_until_it_is_reaped() -> None:
    with subprocess.Popen(SLEEPER) as child:
        identity = identify(child.pid)
        assert identity
        child.kill()
        eventually(lambda: not is_alive(identity))
        assert is_unreaped(identity)
    assert not is_unreaped(identity)
    assert identify(identity.pid) is None


def test_only_who_stands_still_is_killed_for_it() -> None:
    with subprocess.Popen(SLEEPER) as child:
        assert not kill_if_stopped(child.pid)
        suspend(child.pid)
        assert kill_if_stopped(child.pid)
        assert child.wait(10) == -signal.SIGKILL
    assert not kill_if_stopped(child.pid), "it is gone"
