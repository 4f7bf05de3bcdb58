"""`rollway units`: systemd units for a host whose servers are elsewhere."""

import os
from pathlib import Path
from typing import Annotated

import typer

from cli.options import AsJson
from cli.terminal.exits import UsageError
from cli.terminal.output import print_json, printer
from stack import units as systemd

_ENVIRONMENT_FILE = "/etc/rollway/environment"
_FORBIDDEN = set(" \t\n%$\"'\\")


def units(
    *,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Write files there instead.", show_default="standard output"),
    ] = None,
    user: Annotated[str, typer.Option("--user", help="As whom all of it runs; root only for replicas as others.")] = (
        "rollway"
    ),
    environment_file: Annotated[
        str, typer.Option("--environment-file", metavar="FILE", help="What the units read their settings from.")
    ] = _ENVIRONMENT_FILE,
    as_json: AsJson = False,
) -> None:
    """Write systemd units: workers, beat, the server for proxies, Flower, and an example of their environment file.

    They start the Rollway that this command is of. A worker that is stopped or restarted leaves its replicas running.
    """
    _refuse_odd("--user", user)
    _refuse_odd("--environment-file", environment_file)
    if not environment_file.startswith("/"):
        raise UsageError(f"--environment-file must be an absolute path, which {environment_file!r} is not")
    files = systemd.files(user, environment_file)
    if to is not None:
        _write(to, files)
    if as_json:
        return print_json({"folder": None if to is None else to.absolute(), "files": files})
    if to is not None:
        return printer().print(f"{len(files)} files written to {to}: {', '.join(files)}.")
    return typer.echo("\n".join(f"# {name}\n{text}" for name, text in files.items()), nl=False)


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        os.chmod(folder / "rollway.environment", 0o600)  # noqa: PTH101 -- passwords are filled in later
    except OSError as error:
        raise UsageError(f"--to {folder}: {error.strerror}") from None


def _refuse_odd(option: str, value: str) -> None:
    if not value or _FORBIDDEN & set(value):
        raise UsageError(f"{option} must be a plain word without spaces, quotes, % and $, which {value!r} is not")
