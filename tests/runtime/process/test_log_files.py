"""Logs stay small while they are written, are read across their parts, and go when their replica ended long ago."""

import os
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import pytest

from domain.installation.settings import LogLimits
from runtime.machine.log_files import remove_ended, rotate, tail
from runtime.process.process_logs import ProcessLogs

KILOBYTE = 1024
SMALL = LogLimits(megabytes=0.1, files=3)
COUNTING = 'n=0; while :; do n=$((n+1)); echo "line $n"; done'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "web.log"


def parts(log: Path) -> list[Path]:
    """The oldest first."""
    return [part for number in (2, 1) if (part := log.with_name(f"{log.name}.{number}")).exists()] + [log]


def numbers(log: Path) -> list[int]:
    """Of the lines that are kept whole: the last one of a part may be cut, as it was written while it was copied."""
    texts = [part.read_text().rpartition("\n")[0] for part in parts(log)]
    return [int(line.removeprefix("line ")) for text in texts for line in text.splitlines()]


def test_a_log_that_is_written_all_the_time_stays_small_and_whole(log: Path) -> None:
    with log.open("ab") as output:
        writer = subprocess.Popen(["/bin/sh", "-c", COUNTING], stdout=output, start_new_session=True)
    try:
        rotated = 0
        while rotated < 8:
            rotated += rotate(log, SMALL)
            time.sleep(0.002)
    finally:
        os.killpg(writer.pid, signal.SIGKILL)
        writer.wait()
    rotate(log, SMALL)  # it may have written much since the last time, if it was given time and we were not
    found = numbers(log)
    assert len(parts(log)) == 3
    assert found == sorted(found)
    gaps = sum(after != before + 1 for before, after in pairwise(found))
    assert gaps <= 2, "lines may be missing where one part ends and the next begins, and nowhere else"
    assert sum(part.stat().st_size for part in parts(log)) <= 7 * SMALL.most_bytes


def test_one_that_grew_too_fast_keeps_its_end(log: Path) -> None:
    log.write_bytes(b"old\n" * 400 * KILOBYTE + b"new\n")
    assert rotate(log, SMALL)
    assert 1.9 * SMALL.most_bytes < parts(log)[0].stat().st_size < 2 * SMALL.most_bytes
    assert parts(log)[0].read_bytes().startswith(b"old\n")
    assert tail(log, 2) == "old\nnew"
    assert log.stat().st_size == 0


def test_one_that_is_small_or_gone_is_left_alone(log: Path) -> None:
    assert not rotate(log, SMALL)
    log.write_text("a\n")
    assert not rotate(log, SMALL)
    assert log.read_text() == "a\n"


def test_one_that_cannot_be_copied_is_cut_all_the_same(log: Path) -> None:
    log.write_bytes(b"x" * 200 * KILOBYTE)
    log.with_name("web.log.draft").mkdir()
    assert rotate(log, SMALL)
    assert log.stat().st_size == 0


def test_with_one_file_nothing_is_kept(log: Path) -> None:
    log.write_bytes(b"x" * 200 * KILOBYTE)
    assert rotate(log, LogLimits(megabytes=0.1, files=1))
    assert parts(log) == [log]


@pytest.mark.parametrize(("lines", "shown"), [(0, ""), (1, "e"), (3, "c d e"), (4, "b c d e"), (9, "a b c d e")])
def test_the_end_is_read_across_the_parts(log: Path, lines: int, shown: str) -> None:
    log.write_text("d\ne\n")
    log.with_name("web.log.1").write_text("b\nc\n")
    log.with_name("web.log.2").write_text("a\n")
    assert tail(log, lines).split() == shown.split()


def test_of_replicas_that_ended_the_logs_go_by_age_and_then_by_size(tmp_path: Path) -> None:
    for name, days in [("runs.log", 9), ("runs.log.1", 9), ("old.log", 8), ("a.log", 3), ("a.log.1", 4), ("b.log", 1)]:
        (tmp_path / name).write_bytes(b"x" * 100 * KILOBYTE)
        os.utime(tmp_path / name, (0, time.time() - days * 86_400))
    limits = LogLimits(ended_days=7, ended_megabytes=0.2)
    remove_ended(tmp_path, {"runs"}.__contains__, limits)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.log", "b.log", "runs.log", "runs.log.1"]


def test_the_logs_of_replicas_that_are_known_stay(tmp_path: Path) -> None:
    logs, known, gone = ProcessLogs(tmp_path), uuid4(), uuid4()
    logs.folder.mkdir(parents=True)
    for route_id in (known, gone):
        logs.path(route_id).write_bytes(b"x" * 200 * KILOBYTE)
    (tmp_path / "replicas").mkdir()
    (tmp_path / "replicas" / f"{known}.json").touch()
    logs.keep_small(SMALL)
    assert sorted(path.suffix for path in logs.folder.iterdir()) == [".1", ".1", ".log", ".log"]
    logs.keep_small(LogLimits(ended_days=0))
    assert {path.name.partition(".")[0] for path in logs.folder.iterdir()} == {str(known)}
