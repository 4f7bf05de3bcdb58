"""The entry point of `rollway`: its commands, and how each ends."""

import sys
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from cli.apply import command as apply
from cli.commands import bootstrap, doctor, logs, read, slots, steering, traffic, write
from cli.commands.stack import add_stack_commands
from cli.demo import command as demo
from cli.exits import READING, WAITING, WRITING, ExitCode, UsageError, exit_code, exits, tell
from domain.errors import RollwayError

app = typer.Typer(
    name="rollway",
    help="Rolling updates for services outside Kubernetes.",
    epilog="Start with 'rollway demo', or with 'rollway up' and 'rollway apply -f examples/web.yaml --wait'.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("demo", epilog=exits(ExitCode.REFUSED, ExitCode.UNREACHABLE, ExitCode.INTERRUPTED, example="rollway demo"))(
    demo.demo
)
add_stack_commands(app)
app.command("apply", epilog=apply.HELP_END)(apply.apply)
app.command("activate", epilog=exits(*WAITING, example="rollway activate web v2 --wait"))(write.activate)
app.command("pause", epilog=exits(*WRITING, example="rollway pause web --reason 'looking at the logs'"))(steering.pause)
app.command("resume", epilog=exits(*WAITING, example="rollway resume web --wait"))(steering.resume)
app.command("promote", epilog=exits(*WAITING, example="rollway promote web --wait"))(steering.promote)
app.command("abort", epilog=exits(*WAITING, example="rollway abort web --wait"))(steering.abort)
app.command("undo", epilog=exits(*WAITING, example="rollway undo web\nrollway undo web --to v7 --wait"))(steering.undo)
app.command("retry", epilog=exits(*WAITING, example="rollway retry web --wait"))(steering.retry)
app.command("scale", epilog=exits(*WAITING, example="rollway scale web 5 --wait"))(write.scale)
app.command("destroy", epilog=exits(*WAITING, example="rollway destroy web --yes --wait"))(write.destroy)
app.command("status", epilog=exits(*READING, example="rollway status\nrollway status web --watch"))(read.status)
app.command("history", epilog=exits(*READING, example="rollway history web -n 50"))(read.history)
app.command("routes", epilog=exits(*READING, example="rollway routes web --all"))(read.routes)
app.command("logs", epilog=exits(*READING, example="rollway logs 3f2a9c1b --follow"))(logs.logs)

app.command("traffic", epilog=exits(*READING, example="rollway traffic --json"))(traffic.traffic)
app.command("proxies", epilog=exits(*READING, example="rollway proxies"))(traffic.proxies)
app.command("hosts", epilog=exits(*READING, example="rollway hosts"))(traffic.hosts)
app.command("forget-host", epilog=exits(*WRITING, example="rollway forget-host rack-7"))(traffic.forget_host)
app.command(
    "envoy-bootstrap",
    epilog=exits(
        ExitCode.USAGE,
        example="rollway envoy-bootstrap --node-id edge-1 --xds rollway.internal:7070 > envoy.yaml\n"
        "envoy --config-path envoy.yaml",
    ),
)(bootstrap.envoy_bootstrap)

app.command(
    "slots",
    epilog=exits(ExitCode.UNREACHABLE, ExitCode.USAGE, example="rollway slots\nrollway slots 4\nrollway slots --reset"),
)(slots.slots)
app.command("doctor", epilog=exits(*READING, example="rollway doctor --json"))(doctor.doctor)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; a refusal is one sentence, never a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    as_json = "--json" in given
    try:
        returned = app(given, prog_name="rollway", standalone_mode=False)
    except TyperException as error:
        usage = UsageError(f"{error.format_message().rstrip('.')}; {_help_of(given)}")
        tell(usage, as_json=as_json)
        return exit_code(usage)
    except RollwayError as error:
        tell(error, as_json=as_json)
        return exit_code(error)
    return returned if isinstance(returned, int) else 0


def _help_of(given: Sequence[str]) -> str:
    names = {command.name for command in app.registered_commands}
    command = next((f" {word}" for word in given if word in names), "")
    return f"see 'rollway{command} --help'"


if __name__ == "__main__":
    sys.exit(main())
