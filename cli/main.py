"""The entry point of `rollway`: its commands, and how each ends."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence

import typer
from typer.exceptions import TyperException

from cli.apply import command as apply
from cli.commands import bootstrap, doctor, logs, read, slots, stack, traffic
from cli.commands.change import VERBS
from cli.demo import command as demo
from cli.exits import READING, STARTING, WAITING, WRITING, ExitCode, FaultError, UsageError, exit_code, exits, tell
from cli.sending import subcommand
from domain.errors import RollwayError

app = typer.Typer(
    name="rollway",
    help="Rolling updates for services outside Kubernetes.",
    epilog="Start with 'rollway demo', or with 'rollway up' and 'rollway apply -f examples/web.yaml --wait'.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_SHOW_TRACEBACKS = "ROLLWAY_TRACEBACKS"

_Entry = tuple[Callable[..., object], Sequence[ExitCode], str]
"""What a command runs, the exit codes that it can give besides 0, and examples, one a line."""

_COMMANDS: Mapping[str, _Entry] = {
    "demo": (demo.demo, (ExitCode.REFUSED, ExitCode.UNREACHABLE, ExitCode.INTERRUPTED), "rollway demo"),
    "up": (stack.up, STARTING, "rollway up\nrollway up --foreground --workers 4"),
    "down": (stack.down, STARTING, "rollway down\nrollway down --keep-replicas"),
    "restart": (stack.restart, STARTING, "rollway restart\nrollway restart worker1 worker2"),
    "apply": (
        apply.apply,
        WAITING,
        "rollway apply -f examples/web.yaml --wait\ncat web.yaml | rollway apply -f -",
    ),
    **{name: (subcommand(verb), WAITING if verb.goal else WRITING, verb.example) for name, verb in VERBS.items()},
    "status": (read.status, READING, "rollway status\nrollway status web --watch"),
    "history": (read.history, READING, "rollway history web -n 50"),
    "routes": (read.routes, READING, "rollway routes web --all"),
    "logs": (logs.logs, READING, "rollway logs 3f2a9c1b --follow"),
    "traffic": (traffic.traffic, READING, "rollway traffic --json"),
    "proxies": (traffic.proxies, READING, "rollway proxies"),
    "hosts": (traffic.hosts, READING, "rollway hosts"),
    "forget-host": (traffic.forget_host, WRITING, "rollway forget-host rack-7"),
    "envoy-bootstrap": (
        bootstrap.envoy_bootstrap,
        (ExitCode.USAGE,),
        "rollway envoy-bootstrap --xds rollway.internal:7070 > envoy.yaml\nenvoy --config-path envoy.yaml",
    ),
    "proxy-token": (bootstrap.proxy_token, (ExitCode.USAGE,), "rollway proxy-token traefik-1"),
    "slots": (
        slots.slots,
        (ExitCode.UNREACHABLE, ExitCode.USAGE),
        "rollway slots\nrollway slots 4\nrollway slots --reset",
    ),
    "doctor": (doctor.doctor, READING, "rollway doctor --json"),
}
for _name, (_run, _codes, _example) in _COMMANDS.items():
    app.command(_name, epilog=exits(*_codes, example=_example))(_run)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; a refusal is one sentence, never a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    as_json = "--json" in given
    try:
        _refuse_what_is_no_text(given)
        returned = app(given, prog_name="rollway", standalone_mode=False)
    except TyperException as error:
        usage = UsageError(f"{error.format_message().rstrip('.')}; {_help_of(given)}")
        tell(usage, as_json=as_json)
        return exit_code(usage)
    except RollwayError as error:
        tell(error, as_json=as_json)
        return exit_code(error)
    except Exception as error:
        if os.environ.get(_SHOW_TRACEBACKS):
            raise
        fault = FaultError.of(error, _SHOW_TRACEBACKS)
        tell(fault, as_json=as_json)
        return exit_code(fault)
    return returned if isinstance(returned, int) else 0


def _refuse_what_is_no_text(given: Sequence[str]) -> None:
    """Raises UsageError. The shell hands on any bytes; what is no UTF-8 could be neither stored nor shown."""
    for number, argument in enumerate(given, 1):
        if argument.encode(errors="ignore").decode() != argument:
            raise UsageError(f"argument {number}, {argument!r}, is no UTF-8 text; {_help_of(given)}")


def _help_of(given: Sequence[str]) -> str:
    command = next((f" {word}" for word in given if word in _COMMANDS), "")
    return f"see 'rollway{command} --help'"


if __name__ == "__main__":
    sys.exit(main())
