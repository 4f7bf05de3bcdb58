"""What keeps the account of a replica from its program: a closed folder or file, also behind `#!` and links."""

import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from runtime.machine.path_access import Visitor, closed_folders, way_in

_MOST_FILES = 8
_HEAD = 256
_LAST_LINES = 4
_OF_SHELLS = (".sh", ".bash")
_DENIED = "permission denied"
_SHELL_CODES = (126, 127)
_OF_ANOTHER_PROGRAM = ("no module named", "cannot open shared object", _DENIED)
"""What a program prints that lacks a part of itself: tried as root, another one may have run."""
_WORD = re.compile(r"[^\s'\"`:,;()\[\]<>]+")


class ReplicaAccess(BaseModel):
    """The user, the folder and the program that a replica begins with.

    `program`: the first word of its command. `path`: where a program without a folder is looked for. `scripts`: further
    words that name files.
    """

    model_config = ConfigDict(frozen=True)

    user: str
    uid: int
    gids: tuple[int, ...]
    folder: str
    path: str
    program: str
    scripts: tuple[str, ...] = ()

    def barrier(self, home: Path, *, folder_alone: bool = False) -> str:
        """What its command needs and it may not enter or run; empty where nothing is in the way."""
        barrier = self._before(Path(self.folder), home)
        if barrier or folder_alone:
            return barrier
        return self._first(self._needed(), home)

    def barrier_after(self, exit_code: int | None, log_tail: str, home: Path) -> str:
        """The barrier of a program that has ended: from its log, where that mentions a denied access."""
        lines = [line for line in log_tail.splitlines() if _DENIED in line.lower()]
        files = (file for file in self.named_in(lines) if closed_folders(file, self._visitor) or _is_program(file))
        if barrier := self._first(files, home):
            return barrier
        is_likely = exit_code in _SHELL_CODES or any(sign in log_tail.lower() for sign in _OF_ANOTHER_PROGRAM)
        return self.barrier(home) if is_likely else ""

    def named_in(self, lines: Iterable[str]) -> Iterator[Path]:
        """The files that these lines of a log name, whether they are there or not: paths first, then programs."""
        words = [word for line in lines for word in _WORD.findall(line)]
        yield from filter(None, map(self._file, sorted(words, key=lambda word: "/" not in word)))

    def with_crlf(self, log_tail: str) -> Path | None:
        """The script of a shell, or the target of its first line, with line ends of Windows; None for none."""
        program = self._file(self.program)
        if program and _has_crlf(program, b""):
            return program
        scripts = (Path(self.folder) / word for word in self.scripts)
        files = self.named_in(log_tail.splitlines()[-_LAST_LINES:])
        return next((file for file in (*scripts, *files) if _has_crlf(file, b"sh")), None)

    @property
    def _visitor(self) -> Visitor:
        return Visitor(self.uid, frozenset(self.gids))

    def _file(self, word: str) -> Path | None:
        """The file that a word names: below the folder, or on the path."""
        if "/" in word or word.endswith(_OF_SHELLS):
            return Path(self.folder) / word
        on_path = shutil.which(word, path=self.path)
        return Path(on_path) if on_path else None

    def _first(self, files: Iterable[Path], home: Path) -> str:
        """What is in the way to the first of these files; nothing behind that is read."""
        return next(filter(None, (self._before(file, home) for file in files)), "")

    def _before(self, file: Path, home: Path) -> str:
        if folders := closed_folders(file, self._visitor):
            where = "" if file == folders[0] else f", where {file} leads"
            return f"may not enter {folders[0]}{where}: {way_in(folders, home)}"
        with suppress(OSError):
            status = file.stat()
            needs_both = bool(_interpreter_of(file))
            if stat.S_ISREG(status.st_mode) and not self._may_run(status, needs_both=needs_both):
                return f"may not run {file}: 'chmod o+{'rx' if needs_both else 'x'} {file}' lets it"
        return ""

    def _may_run(self, status: os.stat_result, *, needs_both: bool) -> bool:
        may = self._visitor.may
        return may(status, stat.S_IXOTH) and (not needs_both or may(status, stat.S_IROTH))

    def _needed(self) -> Iterator[Path]:
        """The program and its interpreters, one after the other; closed ones are not read."""
        word: str | None = self.program
        for _ in range(_MOST_FILES):
            file = self._file(word) if word else None
            if file is None:
                return
            yield file
            if based_on := _base_of(file):
                yield based_on
            interpreter = _interpreter_of(file)
            if not interpreter:
                return
            word = interpreter[0]
            if Path(word).name == "env":
                yield Path(word)
                word = next((each for each in interpreter[1:] if not each.startswith("-") and "=" not in each), None)


def _head_of(file: Path) -> bytes:
    """The first bytes of a file; none of anything else."""
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            return os.read(descriptor, _HEAD) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
        finally:
            os.close(descriptor)
    return b""


def _interpreter_of(script: Path) -> list[str]:
    """The words after `#!` of a script; none of anything else."""
    head = _head_of(script)
    return _words(os.fsdecode(head[2:].partition(b"\n")[0])) if head.startswith(b"#!") else []


def _has_crlf(script: Path, interpreter: bytes) -> bool:
    """Whether its first line ends in CR LF, and names such an interpreter. Those of other languages take such lines."""
    first = _head_of(script).partition(b"\n")[0]
    return first.endswith(b"\r") and (
        (first.startswith(b"#!") and interpreter in first) or (script.suffix in _OF_SHELLS and b"\0" not in first)
    )


def _is_program(file: Path) -> bool:
    """Whether its owner may run it: data that a replica may not read can be meant for its owner alone."""
    with suppress(OSError):
        return bool(file.stat().st_mode & stat.S_IXUSR)
    return False


def _words(line: str) -> list[str]:
    with suppress(ValueError):
        return shlex.split(line)
    return line.split()


def _base_of(program: Path) -> Path | None:
    """The folder of the Python behind a virtual environment, where the program is in one."""
    with suppress(OSError, UnicodeDecodeError):
        for line in (program.parent.parent / "pyvenv.cfg").read_text()[: _HEAD * 8].splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home" and value.strip():
                return Path(value.strip())
    return None
