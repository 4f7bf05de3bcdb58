"""The program of a replica's process before its command: it reads from a pipe what to become, and becomes that.

An interpreter runs this file alone (-I -S), with an environment of its own and as the worker's user, so that nothing of
the revision has a say before the last step. It imports what costs nothing: `os` alone would be a third of its time.

What it writes to its standard output says how far it came, and nobody can write there once the command runs.
"""

import errno
import marshal
import posix
import resource
from _signal import SIG_DFL, SIGPIPE, SIGXFSZ, signal  # type: ignore[import-not-found]

BEGUN = b"+"
"""The command runs next; anything that follows says why it does not."""
NO_FOLDER, NO_COMMAND, CLOSED, NO_PROGRAM, NO_INTERPRETER, TROUBLE = (
    b"folder",
    b"none",
    b"closed",
    b"no",
    b"by ",
    b"error ",
)
_CODE = 126
_HEAD = 128
_READ = 65_536
_SHELL = b"/bin/sh"


def main() -> None:
    """Become what standard input says; end where it ends too early, since the starter is gone."""
    order = b""
    while piece := posix.read(0, _READ):
        order += piece
    try:
        account, umask, limits, folder, path, command, environment = marshal.loads(order)  # noqa: S302  (of the worker)
    except (EOFError, ValueError):
        raise SystemExit(_CODE) from None
    report = posix.dup(1)
    posix.dup2(2, 1)
    posix.dup2(posix.open("/dev/null", posix.O_RDONLY), 0)
    try:
        _become(account, umask, limits)
        why_not = _enter(folder) or _run(report, path, command, environment)
    except OSError as error:
        why_not = TROUBLE + str(error.errno).encode()
    except ValueError:  # a limit that the system does not take
        why_not = TROUBLE + str(errno.EINVAL).encode()
    posix.write(report, why_not)
    raise SystemExit(_CODE)


def _become(account: tuple[int, int, list[int]] | None, umask: int, limits: list[tuple[int, int, int]]) -> None:
    """Take the account, then its limits. Raises OSError."""
    if account:
        uid, gid, groups = account
        posix.setgroups(groups)
        posix.setgid(gid)
        posix.setuid(uid)
    posix.umask(umask)
    for number, first, most in limits:
        resource.setrlimit(number, (first, most))
    for number in (SIGPIPE, SIGXFSZ):  # which an interpreter ignores
        signal(number, SIG_DFL)


def _enter(folder: bytes | None) -> bytes:
    try:
        if folder:
            posix.chdir(folder)
    except OSError:
        return NO_FOLDER
    return b""


def _run(report: int, path: bytes, command: list[bytes], environment: dict[bytes, bytes]) -> bytes:
    """Run the command where it is found first, under the account; returns why it is not run. Raises OSError."""
    name, why_not = command[0], NO_COMMAND
    for file in [name] if b"/" in name else [(folder or b".") + b"/" + name for folder in path.split(b":")]:
        if not _is_there(file):
            continue
        posix.write(report, BEGUN)
        try:
            posix.execve(file, command, environment)
        except OSError as error:
            why_not = _why(error, file)
        if why_not == NO_PROGRAM and b"\0" not in _head_of(file):
            posix.execve(_SHELL, [_SHELL, file, *command[1:]], environment)  # as every shell runs a script without #!
        if why_not != CLOSED:
            break
    return why_not


def _is_there(file: bytes) -> bool:
    try:
        posix.stat(file)
    except OSError:
        return False
    return True


def _why(error: OSError, file: bytes) -> bytes:
    match error.errno:
        case errno.EACCES:
            return CLOSED
        case errno.ENOEXEC:
            return NO_PROGRAM
        case errno.ENOENT:
            head = _head_of(file)
            return NO_INTERPRETER + head.partition(b"\n")[0][2:50] if head[:2] == b"#!" else NO_INTERPRETER
    return TROUBLE + str(error.errno).encode()


def _head_of(file: bytes) -> bytes:
    try:
        return posix.read(posix.open(file, posix.O_RDONLY), _HEAD)
    except OSError:
        return b""


if __name__ == "__main__":
    main()
