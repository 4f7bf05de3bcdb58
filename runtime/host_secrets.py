"""The secrets of this host: which ones a revision may refer to, and the value of each when a replica starts."""

import os
import selectors
import signal
import stat
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from domain.revisions.secret_refs import DEPLOYMENT, SecretReference, filled_in, references_of, words_of
from runtime.protocol import ReplicaRequest, ReplicaStartError


class CommandFaultError(Exception):
    """The program printed nothing usable; the message says why, without its output."""


def printed_by(words: Sequence[str], environment: Mapping[str, str], most_bytes: int, seconds: float) -> bytes:
    """The program's standard output, at most `most_bytes` and one more. Raises CommandFaultError.

    Its standard error is thrown away, since a program that fails may write there what it was given or what it read.
    It is killed, with what it started, when it is not through in time or writes more.
    """
    try:
        process = subprocess.Popen(  # noqa: S603  # the host's owner has named the program
            words,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
    except (OSError, ValueError) as error:
        why = os.strerror(error.errno or 0) if isinstance(error, OSError) else "its arguments cannot be passed"
        raise CommandFaultError(f"the program cannot be run: {why}") from None
    with process:
        try:
            return _output_of(process, most_bytes, time.monotonic() + seconds)
        except TimeoutError:
            raise CommandFaultError(f"the program was not through within {seconds:g} s") from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def _output_of(process: subprocess.Popen[bytes], most_bytes: int, ends_at: float) -> bytes:
    """Raises TimeoutError and CommandFaultError."""
    assert process.stdout is not None  # noqa: S101  (narrows the type; it was asked for)
    output = _read_until(process.stdout, most_bytes, ends_at)
    if len(output) > most_bytes:
        return output
    try:
        code = process.wait(max(0.0, ends_at - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    if code:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        raise CommandFaultError(f"the program {how}; run it as the worker's user to see why")
    return output


def _read_until(output: IO[bytes], most_bytes: int, ends_at: float) -> bytes:
    content = b""
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while len(content) <= most_bytes:
            if not selector.select(max(0.0, ends_at - time.monotonic())):
                raise TimeoutError
            chunk = os.read(output.fileno(), most_bytes + 1 - len(content))
            if not chunk:
                break
            content += chunk
    return content


MOST_BYTES = 65_536
"""The most bytes of one secret. Linux takes twice as much for a variable."""

COMMAND_SECONDS = 5.0
_ALLOW = "which ROLLWAY_SECRETS_ALLOW in the environment of this host's workers does not name for"


class SecretFaultError(Exception):
    """The secret is not available on this host; the message says why, without any content."""


class UnreadSecretError(ReplicaStartError):
    """A replica cannot be started here without the secret `reference`; `fault`: why it is missing."""

    def __init__(self, host: str, variable: str, reference: str, fault: str) -> None:
        super().__init__(f"host {host} cannot have the secret {reference} of variable {variable}: {fault}")
        self.reference = reference
        self.fault = fault


@dataclass(frozen=True, slots=True)
class HostSecrets:
    """The secrets that revisions may refer to on `host`. By default: none.

    `allow`: folders, as file:/run/secrets, with all that is in them, and commands, as "command:/usr/bin/vault read",
    with whatever further arguments. `variables`: a file of NAME=value lines, all of which may be referred to.
    In each of them `{deployment}` is the name of the deployment whose revision refers to a secret.
    `environment`: what commands are told, besides those variables; after `command_seconds` they are killed.
    """

    host: str = ""
    allow: Collection[str] = ()
    variables: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    command_seconds: float = COMMAND_SECONDS

    @property
    def for_all(self) -> Sequence[str]:
        """The secrets of every deployment: folders, programs, and the file of variables."""
        variables = () if self.variables is None else (f"env:{self.variables}",)
        wide = (entry for entry in (*self.allow, *variables) if DEPLOYMENT not in entry)
        return [words_of(entry)[0] if entry.startswith("command:") else entry for entry in wide]

    def value_of(self, reference: SecretReference, deployment: str) -> str:
        """The value of a secret for a deployment. One trailing newline is stripped. Raises SecretFaultError."""
        match reference.kind:
            case "env":
                return _as_text(self._variable(reference.what, deployment).encode())
            case "command":
                return _as_text(self._printed(reference.what, deployment))
        return _as_text(self._content(Path(reference.what), deployment))

    def fault_of(self, reference: SecretReference, deployment: str) -> str | None:
        """Why a deployment cannot have it; None when it can."""
        try:
            self.value_of(reference, deployment)
        except SecretFaultError as error:
            return str(error)
        return None

    def of(self, request: ReplicaRequest) -> dict[str, str]:
        """The values of those variables of its revision that are references. Raises UnreadSecretError."""
        values: dict[SecretReference, str] = {}
        references = references_of(request.spec.env)
        for variable, reference in references.items():
            if reference in values:
                continue
            try:
                values[reference] = self.value_of(reference, request.deployment)
            except SecretFaultError as error:
                raise UnreadSecretError(self.host, variable, reference.secret, str(error)) from None
        return {variable: values[reference] for variable, reference in references.items()}

    def _allowed(self, kind: str, deployment: str) -> list[str]:
        entries = (entry.partition(":")[2] for entry in self.allow if entry.startswith(f"{kind}:"))
        return [filled for entry in entries if (filled := filled_in(entry, deployment)) is not None]

    def _variable(self, name: str, deployment: str) -> str:
        if self.variables is None:
            raise SecretFaultError("ROLLWAY_SECRETS_ENV_FILE is not set in the environment of this host's workers")
        values = self._variables(deployment)
        if name not in values:
            raise SecretFaultError("ROLLWAY_SECRETS_ENV_FILE has no line for it")
        return values[name]

    def _variables(self, deployment: str) -> dict[str, str]:
        """Lines of NAME=value; the value is taken as it is. Raises SecretFaultError.

        A deployment that has no file of its own has no variables.
        """
        file = None if self.variables is None else filled_in(str(self.variables), deployment)
        if file is None:
            return {}
        try:
            lines = Path(file).read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            if isinstance(error, FileNotFoundError) and file != str(self.variables):
                return {}
            why = os.strerror(error.errno or 0) if isinstance(error, OSError) else "it is no UTF-8 text"
            raise SecretFaultError(f"the file of ROLLWAY_SECRETS_ENV_FILE cannot be read: {why}") from None
        pairs = (line.partition("=") for line in lines if "=" in line and not line.lstrip().startswith("#"))
        return {name.strip(): value for name, _, value in pairs}

    def _printed(self, command: str, deployment: str) -> bytes:
        words = words_of(command)
        allowed = map(words_of, self._allowed("command", deployment))
        if not any(words[: len(start)] == start for start in allowed):
            raise SecretFaultError(f"it is a command, {_ALLOW} {deployment}")
        environment = {**self.environment, **self._variables(deployment)}
        try:
            return printed_by(words, environment, MOST_BYTES, self.command_seconds)
        except CommandFaultError as error:
            raise SecretFaultError(str(error)) from None

    def _content(self, path: Path, deployment: str) -> bytes:
        """The file. Targets of links must be allowed too: a link in a writable folder could lead anywhere."""
        try:
            folders = [Path(os.path.realpath(folder)) for folder in self._allowed("file", deployment)]
            file = Path(os.path.realpath(path))
            if not any(file.is_relative_to(folder) for folder in folders):
                raise SecretFaultError(f"it is a file, {_ALLOW} {deployment}")
            with open(file, "rb", opener=_open) as stream:
                if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    raise SecretFaultError("it is no file")
                return stream.read(MOST_BYTES + 1)
        except OSError as error:
            raise SecretFaultError(f"it cannot be read: {os.strerror(error.errno or 0)}") from None


NO_SECRETS = HostSecrets()


def _open(path: str, flags: int) -> int:
    """Open without waiting for a pipe's writer, and without following a link that has come since."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)


def _as_text(content: bytes) -> str:
    if len(content) > MOST_BYTES:
        raise SecretFaultError(f"it has more than {MOST_BYTES:,} bytes")
    try:
        text = content.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise SecretFaultError("it is no UTF-8 text") from None
    if not text or "\0" in text:
        raise SecretFaultError("it is empty" if not text else "it has a NUL, which no variable can hold")
    return text
