"""A server for people instead of database and Redis: reads and commands over HTTP, where ROLLWAY_URL names one."""

import os
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from cli.terminal.exits import UnreachableError, UsageError
from domain.text.errors import RollwayError

if TYPE_CHECKING:
    import httpx

    from domain.commands.base import Command

T = TypeVar("T")
URL, TOKEN = "ROLLWAY_URL", "ROLLWAY_TOKEN"
_TIMEOUT_SECONDS = 30.0
_SILENT_SECONDS = 40.0
"""The longest silence of a stream: the server sends a comment every 4 s."""
_TRIES = 4
_UNAVAILABLE = (502, 503, 504)
_TOO_MANY = 429


class Remote:
    """The server at `url`, called with a token.

    `patience`: seconds to wait for an answer, once; None: wait for long, and retry.
    """

    def __init__(self, url: str, token: str, patience: float | None = None) -> None:
        import httpx  # noqa: PLC0415  (a tenth of a second, which commands without it save)

        self.address = urlsplit(url).netloc
        headers = {"authorization": f"Bearer {token}", "user-agent": "rollway-cli"}
        try:
            self._client = httpx.Client(base_url=url, headers=headers, timeout=patience or _TIMEOUT_SECONDS)
        except (httpx.InvalidURL, ValueError, UnicodeError):
            raise UsageError(
                f"{URL} or {TOKEN} cannot be used: an address such as https://rollway.example.com"
            ) from None
        self._tries = 1 if patience else _TRIES

    def send(self, command: "Command") -> dict[str, Any]:
        """Carry out a command; repeated after a lost connection, it is done once."""
        from api.people.resources.command_resources import request_of  # noqa: PLC0415  (as above)

        method, path, body, headers = request_of(command)
        answer: dict[str, Any] = self.ask(method, path, json=body, headers=headers)
        return answer

    def get(self, path: str, **parameters: object) -> Any:  # noqa: ANN401  (JSON)
        """The document at this path. Raises the refusals of `domain`, and UnreachableError."""
        return self.ask("GET", path, params={name: value for name, value in parameters.items() if value is not None})

    def lines(self, path: str, parameters: Mapping[str, str], headers: Mapping[str, str]) -> Iterator[str]:
        """The lines of a stream as they come, from an empty one when it is open until either side ends it.

        Raises UnreachableError, also when nothing comes any more.
        """
        import httpx  # noqa: PLC0415  (as above)

        patience = httpx.Timeout(_TIMEOUT_SECONDS, read=_SILENT_SECONDS)
        try:
            with self._client.stream("GET", path, params=parameters, headers=headers, timeout=patience) as answer:
                if not answer.is_success:
                    answer.read()
                    self._content_of(answer)
                yield ""
                yield from answer.iter_lines()
        except httpx.HTTPError as error:
            raise self._lost(error) from None

    def ask(self, method: str, path: str, **more: Any) -> Any:  # noqa: ANN401  (JSON, and what httpx takes)
        """The server's answer."""
        for remaining in reversed(range(self._tries)):
            answer = self._answer(method, path, is_last=not remaining, **more)
            if answer is None or (answer.status_code == _TOO_MANY and remaining):
                time.sleep(float(answer.headers.get("retry-after", 1)) if answer is not None else 0.5)
                continue
            return self._content_of(answer)
        raise AssertionError

    def _answer(self, method: str, path: str, *, is_last: bool, **more: Any) -> "httpx.Response | None":  # noqa: ANN401
        """The answer; None when there was none, and a retry follows."""
        import httpx  # noqa: PLC0415  (as above)

        try:
            return self._client.request(method, path, **more)
        except httpx.HTTPError as error:
            if not is_last:
                return None
            raise self._lost(error) from None
        except httpx.InvalidURL:
            raise UsageError(f"{URL} must be an address such as https://rollway.example.com") from None

    def _lost(self, error: Exception) -> UnreachableError:
        why = str(error) or type(error).__name__
        return UnreachableError(f"the server at {self.address}, which {URL} names, cannot be reached: {why}")

    def _content_of(self, answer: "httpx.Response") -> Any:  # noqa: ANN401  (JSON)
        try:
            document = answer.json()
        except ValueError:
            document = None
        if answer.is_success and document is not None:
            return document
        if not isinstance(document, dict) or "code" not in document or answer.status_code in _UNAVAILABLE:
            detail = document.get("detail") if isinstance(document, dict) else f"status {answer.status_code}"
            raise UnreachableError(f"the server at {self.address}, which {URL} names, answers: {detail}")
        raise refusal(document)


_REMOTES: dict[tuple[str, str, float | None], Remote] = {}
"""The servers of this process, by address, token and patience: a connection is kept from one read to the next."""


def refusal(problem: Mapping[str, Any]) -> RollwayError:
    """The refusal that this process would have raised itself."""
    kind = _kind(problem["code"])
    values = dict(problem.get("values") or {})
    if "field" in problem:
        values["field"] = problem["field"]
    return kind(str(problem["detail"]), **values)


def _kind(code: str) -> type[RollwayError]:
    """The refusal of that code; one of its own for a code that this process does not know."""
    kinds = [RollwayError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    known = next((kind for kind in kinds if kind.code == code), None)
    return known or type("RemoteError", (RollwayError,), {"code": code})


def remote(patience: float | None = None) -> Remote | None:
    """The server that ROLLWAY_URL names; None: commands reach the database themselves. Raises UsageError.

    `patience`: as `Remote` has it.
    """
    url = os.environ.get(URL, "")
    if not url:
        return None
    token = os.environ.get(TOKEN, "")
    if not token:
        raise UsageError(f"{URL} is set and {TOKEN} is not: 'rollway token create' makes one where the database is")
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{URL} must be an address such as https://rollway.example.com, not {url!r}")
    key = (url, token, patience)
    if key not in _REMOTES:
        _REMOTES[key] = Remote(url.rstrip("/"), token, patience)
    return _REMOTES[key]


def needs_database() -> UnreachableError:
    """The error of a command that the server does not offer."""
    message = (
        f"this command needs the database, and {URL} is set: run it on a machine of the installation, without {URL}"
    )
    return UnreachableError(message)
