"""The words of a command and of variables: what is filled in, and what no shell reads."""

import pytest

from domain.commands.apply.document import Document
from domain.revisions.revision import filled_in
from domain.text.errors import InvalidInputError

TOLD = {"PORT": "8123", "HOST": "127.0.0.1", "ROLLWAY_ROUTE": "0199"}


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("gunicorn --bind {host}:{port} app:app", "gunicorn --bind 127.0.0.1:8123 app:app"),
        ("server --port={port} --name web-{route}", "server --port=8123 --name web-0199"),
        ("print {} {PORT} {{x}} ${port}", "print {} {PORT} {{x}} $8123"),
        ("serve", "serve"),
    ],
)
def test_where_to_listen_is_filled_in_and_other_braces_stay(command: str, runs: str) -> None:
    assert filled_in(command.split(), TOLD) == runs.split()


def refusal(**revision: object) -> str:
    """Why a file with this revision is refused; empty where it is taken."""
    try:
        Document.model_validate({"deployment": "web", "revision": revision})
    except ValueError as error:
        return InvalidInputError.of(error, model=Document).message  # type: ignore[arg-type]
    return ""


SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("gunicorn --bind $HOST:$PORT", "no shell reads '$HOST:$PORT': write '{host}:{port}', or"),
        (("uvicorn", "--port=${PORT}"), "no shell reads '--port=${PORT}': write '--port={port}', or"),
        (("serve", "$HOME/conf", "$PORTAL"), "no shell reads '$HOME/conf': write its value"),
        ("serve --config $CONFIG", "no shell reads '$CONFIG': write its value"),
        ("serve --name web-$REVISION", "no shell reads '$REVISION': write its value"),
        ("serve ${CONFIG:-x}/a", "no shell reads '${CONFIG:-x}': write its value"),
        ("serve --host $(hostname)", "no shell reads '$(hostname)': write what it comes to"),
        ("serve --host `hostname -f`", "no shell reads '`hostname -f`': write what it comes to"),
        ("~/app/serve", "no shell reads '~/app/serve': write the whole path, as in '/home/ann/app/serve'"),
        (("python", "~/serve.py"), "no shell reads '~/serve.py': write the whole path"),
        ("python ~bob/serve.py", "no shell reads '~bob/serve.py': write the whole path"),
        ("cd ../app && python3 serve.py", "'cd' is a word of shells, and no program: set working_directory, or let"),
        ("cd /srv/app; exec ./serve", "'cd' is a word of shells"),
        ("exec python3 serve.py", "'exec' is a word of shells, and no program: leave 'exec' out"),
        ("source venv/bin/activate", "'source' is a word of shells, and no program: put the variables into env"),
        (". ./env.sh", "'.' is a word of shells"),
        ("export DEBUG=1", "'export' is a word of shells, and no program: put the variable into env"),
        ("set -e", "'set' is a word of shells, and no program: leave it out, or let a shell run it"),
        ("ulimit -n 4096", "'ulimit' is a word of shells, and no program: a host's ROLLWAY_REPLICA_FILES"),
        ("umask 022", "'umask' is a word of shells, and no program: leave it out"),
        ("unset DEBUG", "'unset' is a word of shells, and no program: leave the variable out of env"),
        ("eval serve", "'eval' is a word of shells, and no program: write the command itself"),
        ("alias s=serve", "'alias' is a word of shells, and no program: write the command itself"),
        (("for", "a", "in", "b"), "'for' is a word of shells, and no program: let a shell run it: sh -c"),
        (("while", "true"), "'while' is a word of shells, and no program: let a shell run it"),
        (("trap", "x", "EXIT"), "'trap' is a word of shells, and no program: let a shell run it"),
        ("wait", "'wait' is a word of shells, and no program: let a shell run it"),
        (("if", "[", "-f", "x", "]"), "'if' is a word of shells, and no program: let a shell run it"),
        ("FOO=bar serve", "no shell reads 'FOO=bar': put it into env, as in env: {FOO: 'bar'}, or let"),
        ("DEBUG= python3 serve.py", "no shell reads 'DEBUG=': put it into env, as in env: {DEBUG: ''}"),
        (("A=1", "B=2", "serve"), "no shell reads 'A=1': put it into env"),
        ("migrate && serve", "no shell reads '&&': let a shell run it: sh -c '... && exec ...'"),
        (("migrate", "&&", "serve"), "no shell reads '&&': let a shell run it"),
        (("migrate", "||", "serve"), "no shell reads '||': let a shell run it"),
        ('serve --pid "$(pidof x)" $(hostname)', "no shell reads '$(hostname)': write what it comes to"),
        ("serve || serve --slow", "no shell reads '||': let a shell run it: sh -c '... || exec ...'"),
        ("migrate ; serve", "no shell reads ';': let a shell run it: sh -c '... ; exec ...'"),
        ("migrate; serve", "no shell reads 'migrate;': let a shell run it: sh -c '... ; exec ...'"),
        ("serve | tee log", "no shell reads '|': let a shell run it: sh -c '... | ...'"),
        ("serve > log 2>&1", "no shell reads '>': leave it out, as 'rollway logs' has what it prints"),
        ("serve >>log", "no shell reads '>>log': leave it out"),
        ("serve 2>/dev/null", "no shell reads '2>/dev/null': leave it out"),
        ("serve &>log", "no shell reads '&>log': leave it out"),
        ("serve < input", "no shell reads '<': leave it out"),
        ("serve &", "no shell reads '&': leave it out, as a replica stays in the foreground"),
    ],
)
def test_what_no_shell_reads_in_a_command_is_refused_with_what_says_it(command: object, said: str) -> None:
    assert refusal(command=command).startswith(f"revision.command: {said}")


@pytest.mark.parametrize(
    "command",
    [
        ("sh", "-c", "exec gunicorn --bind $HOST:$PORT"),
        "sh -c 'cd /srv && A=1 exec serve > log'",
        ("timeout", "60", "/bin/bash", "-c", "serve $PORT"),
        *((shell, "-ec", "serve $PORT") for shell in SHELLS),
        *((f"/bin/{shell}", "run.sh", "~/data", "&&") for shell in SHELLS),
        "/bin/bash run.sh > log && $CONFIG",
        *(("interpreter", flag, "print $PORT") for flag in ("-c", "-e", "-S", "--eval", "--command")),
        "perl -e $PORT",
        ("FOO=bar",),
        ("awk", "|", "a"),
        "env FOO=bar serve",
        "serve --set A=b",
        "grep '$HOME|a>b' file",
        'serve --message "a && b; c"',
        "nginx -g 'daemon off;'",
        "find /srv -exec touch {} \\;",
        "serve --url http://x/?a=1&b=2",
        "serve a~b ~-",
        "jq '.[] | select(.a > $x)'",
        ("serve", "a|b", "c;", ">1.2"),
        "serve^foo$",
        "cdrom",
        "docker-entrypoint.sh --price 5$",
    ],
)
def test_what_a_program_may_be_given_is_taken(command: object) -> None:
    assert refusal(command=command) == ""


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (
            {"PATH": "/opt/app/bin:$PATH"},
            "PATH: no shell reads '$PATH', so it is kept as it is: write the whole value, such as '/opt",
        ),
        (
            {"PYTHONPATH": "lib:${PYTHONPATH}"},
            "PYTHONPATH: no shell reads '${PYTHONPATH}', so it is kept as it is",
        ),
        ({"DATA": "$HOME/data"}, "DATA: no shell reads '$HOME', so it is kept as it is: write the whole value"),
        ({"DATA": "p$x:$PWD"}, "DATA: no shell reads '$PWD'"),
        ({"NAME": "$USER@$HOSTNAME"}, "NAME: no shell reads '$USER'"),
        ({"NAME": "web@$HOSTNAME"}, "NAME: no shell reads '$HOSTNAME'"),
        ({"TOOLS": "$PATH"}, "TOOLS: no shell reads '$PATH', so it is kept as it is: write the whole value"),
        ({"A": "1", "B": "x/$A"}, "B: no shell reads '$A'"),
        ({"URL": "http://$HOST:$PORT/"}, "URL: no shell reads '$HOST': write 'http://{host}:$PORT/'"),
        ({"LISTEN": ":${PORT}"}, "LISTEN: no shell reads '${PORT}': write ':{port}'"),
        ({"LOGS": "${HOME:-/tmp}/logs"}, "LOGS: no shell reads '${HOME:-/tmp}'"),
        ({"PATH": "~/bin:/usr/bin"}, "PATH: no shell reads '~' in '~/bin:/usr/bin': write the whole path"),
        ({"LD_LIBRARY_PATH": "/a:~bob/lib"}, "LD_LIBRARY_PATH: no shell reads '~'"),
    ],
)
def test_what_no_shell_reads_in_a_variable_is_refused_with_what_says_it(env: dict[str, str], said: str) -> None:
    assert refusal(command="serve", env=env).startswith(f"revision.env: {said}")
    assert refusal(runtime="docker", docker={"image": "web:1"}, env=env).startswith(f"revision.env: {said}")
    assert refusal(runtime="external", external={"webhook": "https://x.example.com"}, env=env) == ""


def test_only_a_search_path_is_told_what_one_looks_like() -> None:
    assert refusal(command="serve", env={"PATH": "$PATH"}).endswith(
        "such as '/opt/app/bin:/usr/local/bin:/usr/bin:/bin'"
    )
    assert refusal(command="serve", env={"TOOLS": "$PATH"}).endswith("write the whole value")


@pytest.mark.parametrize(
    "value",
    [
        "$2b$10$N9qo8uLOickgx2ZMRZoMye",
        "pa$$word",
        "pa$HOME",
        "$5",
        "%(x)s {{x}} ☃ ",
        "US$",
        "$x",
        "${unset}",
        "~",
        "a && b",
        "{port",
    ],
)
def test_a_value_that_may_be_meant_arrives_byte_for_byte(value: str) -> None:
    assert refusal(command="serve", env={"VALUE": value, "OTHER": f"x {value}"}) == ""
    assert filled_in([value], TOLD) == [value]
