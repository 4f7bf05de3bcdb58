"""The words of a command: what is filled in, and what nobody would replace."""

import pytest

from domain.revisions.revision import filled_in, unfilled

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


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (("gunicorn", "--bind", "$HOST:$PORT"), "$HOST:$PORT"),
        (("uvicorn", "--port=${PORT}"), "--port=${PORT}"),
        (("sh", "-c", "exec gunicorn --bind $HOST:$PORT"), ""),
        (("timeout", "60", "/bin/bash", "-c", "serve $PORT"), ""),
        (("perl", "-e", "print $PORT"), ""),
        (("serve", "$PORTAL", "$HOSTS", "{port}"), ""),
    ],
)
def test_a_variable_that_no_shell_reads_is_found(command: tuple[str, ...], word: str) -> None:
    assert unfilled(command) == word
