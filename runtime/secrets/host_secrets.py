"""The secrets of this host: which of them a revision may refer to, and what each comes to when a replica starts."""

import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from domain.revisions.secrets import SecretReference, references_of, words_of
from runtime.base import ReplicaRequest, ReplicaStartError
from runtime.secrets.command import CommandFaultError, printed_by

MOST_BYTES = 65_536
"""The most bytes of one secret. Linux takes twice as much for a variable."""

COMMAND_SECONDS = 5.0
_ALLOW = "which ROLLWAY_SECRETS_ALLOW in the environment of this host's workers does not name"


class SecretFaultError(Exception):
    """The secret cannot be had on this host; the message says why, without anything of what was read."""


class UnreadSecretError(ReplicaStartError):
    """A replica cannot be started here for want of a secret: `reference`, for the reason `fault`."""

    def __init__(self, host: str, variable: str, reference: str, fault: str) -> None:
        super().__init__(f"host {host} cannot have the secret {reference} of variable {variable}: {fault}")
        self.reference = reference
        self.fault = fault


@dataclass(frozen=True, slots=True)
class HostSecrets:
    """The secrets that revisions may refer to on `host`. By default: none.

    `allow`: folders, as file:/run/secrets, with all that is in them, and commands, as "command:/usr/bin/vault read",
    with whatever further arguments. `variables`: a file of NAME=value lines, all of which may be referred to.
    `environment`: what commands are told, besides those variables; after `command_seconds` they are killed.
    """

    host: str = ""
    allow: Collection[str] = ()
    variables: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    command_seconds: float = COMMAND_SECONDS

    def read(self, reference: SecretReference) -> str:
        """The value of a secret; of one newline in its end it is freed. Raises SecretFaultError."""
        match reference.kind:
            case "env":
                return _as_text(self._variable(reference.what).encode())
            case "command":
                return _as_text(self._printed(reference.what))
        return _as_text(self._content(Path(reference.what)))

    def fault_of(self, reference: SecretReference) -> str | None:
        """Say why it cannot be had; None when it can."""
        try:
            self.read(reference)
        except SecretFaultError as error:
            return str(error)
        return None

    def of(self, request: ReplicaRequest) -> dict[str, str]:
        """The values of those variables of its revision that are references. Raises UnreadSecretError."""
        values: dict[SecretReference, str] = {}
        wanted = references_of(request.spec.env)
        for variable, reference in wanted.items():
            if reference in values:
                continue
            try:
                values[reference] = self.read(reference)
            except SecretFaultError as error:
                raise UnreadSecretError(self.host, variable, reference.secret, str(error)) from None
        return {variable: values[reference] for variable, reference in wanted.items()}

    def _variable(self, name: str) -> str:
        if self.variables is None:
            raise SecretFaultError("ROLLWAY_SECRETS_ENV_FILE is not set in the environment of this host's workers")
        values = self._variables()
        if name not in values:
            raise SecretFaultError("ROLLWAY_SECRETS_ENV_FILE has no line for it")
        return values[name]

    def _variables(self) -> dict[str, str]:
        """Lines of NAME=value; what stands behind the = is the value as it is. Raises SecretFaultError."""
        if self.variables is None:
            return {}
        try:
            lines = self.variables.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            why = os.strerror(error.errno or 0) if isinstance(error, OSError) else "it is no UTF-8 text"
            raise SecretFaultError(f"the file of ROLLWAY_SECRETS_ENV_FILE cannot be read: {why}") from None
        pairs = (line.partition("=") for line in lines if "=" in line and not line.lstrip().startswith("#"))
        return {name.strip(): value for name, _, value in pairs}

    def _printed(self, command: str) -> bytes:
        words = words_of(command)
        allowed = [words_of(entry.partition(":")[2]) for entry in self.allow if entry.startswith("command:")]
        if not any(words[: len(start)] == start for start in allowed):
            raise SecretFaultError(f"it is a command, {_ALLOW}")
        try:
            return printed_by(words, {**self.environment, **self._variables()}, MOST_BYTES, self.command_seconds)
        except CommandFaultError as error:
            raise SecretFaultError(str(error)) from None

    def _content(self, path: Path) -> bytes:
        """Return the file; what links lead to must be allowed too: who may write in a folder could lead anywhere."""
        try:
            folders = [
                Path(os.path.realpath(entry.partition(":")[2])) for entry in self.allow if entry.startswith("file:")
            ]
            file = Path(os.path.realpath(path))
            if not any(file.is_relative_to(folder) for folder in folders):
                raise SecretFaultError(f"it is a file, {_ALLOW}")
            with open(file, "rb", opener=_open) as opened:
                if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                    raise SecretFaultError("it is no file")
                return opened.read(MOST_BYTES + 1)
        except OSError as error:
            raise SecretFaultError(f"it cannot be read: {os.strerror(error.errno or 0)}") from None


NO_SECRETS = HostSecrets()


def _open(path: str, flags: int) -> int:
    """Without waiting for whoever writes into a pipe, and without following a link that has come since."""
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
