"""Replicas that another system starts and stops: Rollway asks it, and gets reports by `rollway.report_route`."""

import asyncio
import socket
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Literal
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import structlog
from kombu.exceptions import OperationalError

from domain.outbox.delivery import body_of, signed_headers
from domain.outbox.targets import Target
from domain.revisions.runtime_spec import ExternalSpec
from domain.text.errors import InvalidInputError
from domain.text.storable import storable
from runtime.protocol import Replica, ReplicaRequest, ReplicaStartError, RuntimeUnavailableError

Action = Literal["start", "stop", "kill"]
Payload = Mapping[str, object]
SendTask = Callable[[str, Payload, str], object]
"""Sends the Celery task of this name with this `payload` to this queue."""

DEFAULT_QUEUE = "celery"
_TRY_LATER = frozenset({408, 425, 429})
_SUCCESS = range(200, 300)
_SERVER_ERROR = 500
_REMEMBERED = 10_000
_log = structlog.get_logger(__name__)


class RefusedError(Exception):
    """The other system refused; the message is one sentence."""


class ExternalRuntime:
    """The Runtime for `runtime: external`. It keeps nothing: reports on a replica are in Postgres.

    `send_task` is for revisions that ask by a Celery task. When a system has not answered a kill for
    `patience_seconds`, this process takes its replica as gone, so that no drain is held for ever. `allow`:
    beginnings of URLs, and queues, that may be asked for what was added with a token for some deployments. A call to a
    URL below one of the `targets` is signed with the keys of that target.
    """

    def __init__(
        self,
        send_task: SendTask,
        timeout_seconds: float = 5.0,
        patience_seconds: float = 60.0,
        allow: Sequence[str] = (),
        targets: Callable[[], Mapping[str, Target]] = dict,
    ) -> None:
        self._send_task = send_task
        self._targets = targets
        self._allow = allow
        self._timeout = timeout_seconds
        self._patience = patience_seconds
        self._first_kill: OrderedDict[UUID, float] = OrderedDict()
        self._gone: OrderedDict[UUID, None] = OrderedDict()

    def start(self, request: ReplicaRequest) -> Replica:
        """Ask for the replica; its address is None until it is reported. Asked again, the request id is the same.

        Raises ReplicaStartError when the other system refuses, RuntimeUnavailableError when it cannot be reached.
        """
        try:
            self._ask(request, "start")
        except RefusedError as error:
            raise ReplicaStartError(str(error)) from error
        return _running_elsewhere(request.route_id)

    def find(self, route_id: UUID) -> Replica | None:
        """A running replica without an address: nobody here can ask, so it runs until it is reported or was killed."""
        return None if route_id in self._gone else _running_elsewhere(route_id)

    def everyone(self) -> Sequence[Replica]:
        """Empty: only the other system knows."""
        return ()

    def terminate(self, route_id: UUID, request: ReplicaRequest | None = None, /) -> None:
        """Ask to stop it. A refusal is logged: the kill comes after the grace. Raises RuntimeUnavailableError."""
        self._ask_to_end(route_id, request, "stop")

    def kill(self, route_id: UUID, request: ReplicaRequest | None = None, /) -> None:
        """Ask to kill it. It counts as gone once that was answered or given up; until then: RuntimeUnavailableError."""
        first = self._first_kill.setdefault(route_id, time.monotonic())
        _trim(self._first_kill)
        try:
            self._ask_to_end(route_id, request, "kill")
        except RuntimeUnavailableError as error:
            if time.monotonic() - first < self._patience:
                raise
            _log.warning("a kill was never answered: the replica may run on", route=str(route_id), why=str(error))
        self._gone[route_id] = None
        _trim(self._gone)

    def forget(self, route_id: UUID) -> None:
        """Do nothing: there is no record, and that it is gone stays true."""

    def log_tail(self, route_id: UUID, lines: int) -> str:  # noqa: ARG002  # the protocol's names
        """Empty: its output is with the other system."""
        return ""

    def _ask_to_end(self, route_id: UUID, request: ReplicaRequest | None, action: Action) -> None:
        if request is None:
            raise ValueError(f"to {action} the external replica {route_id}, its request is needed: whom to ask")
        try:
            self._ask(request, action)
        except RefusedError as error:
            _log.warning("an external replica is not ended", route=str(route_id), action=action, why=str(error))

    def _ask(self, request: ReplicaRequest, action: Action) -> None:
        external = _spec(request)
        if request.is_walled:
            self._refuse_what_is_not_allowed(external)
        payload = _document(request, action)
        if external.webhook:
            self._post(external.webhook, payload)
        elif external.task:
            self._send(external.task, payload, external.queue or DEFAULT_QUEUE)

    def _refuse_what_is_not_allowed(self, external: ExternalSpec) -> None:
        """Raises RefusedError: else a token for one deployment could call any address in reach of this host."""
        queue = f"queue:{external.queue or DEFAULT_QUEUE}"
        if external.task and queue in self._allow:
            return
        if external.webhook and any(_is_below(external.webhook, allowed) for allowed in self._allow):
            return
        target = _without_secrets(external.webhook) if external.webhook else queue
        raise RefusedError(
            f"it was added with a token for some deployments, and ROLLWAY_EXTERNAL_ALLOW does not name {target}"
        )

    def _post(self, url: str, payload: Payload) -> None:
        name = _without_secrets(url)
        body = body_of(payload)
        headers = {"Idempotency-Key": str(payload["request_id"]), **self._signature(url, body, payload["request_id"])}
        try:
            reply = post(url, body, headers, self._timeout)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise RefusedError(f"the webhook {name} is no URL that can be asked") from error
        except TimeoutError as error:
            raise RuntimeUnavailableError(f"the webhook {name} has not answered within {self._timeout:g} s") from error
        except httpx.HTTPError as error:
            raise RuntimeUnavailableError(f"the webhook {name} cannot be reached: {why_not_reached(error)}") from error
        if reply.status in _SUCCESS:
            return
        answer = f"the webhook {name} answered {reply.status} {_first_line(reply.text)}".rstrip()
        if reply.status >= _SERVER_ERROR or reply.status in _TRY_LATER:
            raise RuntimeUnavailableError(answer)
        raise RefusedError(answer)

    def _signature(self, url: str, body: bytes, request_id: object) -> Mapping[str, str]:
        try:
            targets = [target for target in self._targets().values() if _is_below(url, target.url)]
        except InvalidInputError as error:
            raise RuntimeUnavailableError(f"its call cannot be signed: {error.message}") from error
        keys = max(targets, key=lambda target: len(target.url)).keys if targets else ()
        return signed_headers(body, request_id, datetime.now(UTC), keys) if keys else {}

    def _send(self, task: str, payload: Payload, queue: str) -> None:
        try:
            self._send_task(task, payload, queue)
        except (OperationalError, OSError) as error:
            raise RuntimeUnavailableError(f"the task {task!r} cannot be sent: the broker does not answer") from error


def _is_below(url: str, allowed: str) -> bool:
    """Whether the URL is on the same server, and its path below: /a for /a and /a/b, not for /ab."""
    target, prefix = urlsplit(url), urlsplit(allowed)
    if (target.scheme, target.netloc) != (prefix.scheme, prefix.netloc) or ".." in target.path or "%" in target.path:
        return False
    return target.path == prefix.path or target.path.startswith(f"{prefix.path.rstrip('/')}/")


def _document(request: ReplicaRequest, action: Action) -> Payload:
    return {
        "action": action,
        "route_id": str(request.route_id),
        "deployment": request.deployment,
        "revision": request.revision,
        "env": request.env,
        "request_id": f"{request.route_id}-{action}",
    }


def _spec(request: ReplicaRequest) -> ExternalSpec:
    if request.spec.external is None:
        raise ValueError(f"revision {request.revision!r} is not for the runtime 'external'")
    return request.spec.external


def _running_elsewhere(route_id: UUID) -> Replica:
    return Replica(route_id, f"external:{route_id}", None, running=True)


def _without_secrets(url: str) -> str:
    """The URL without user, password and query, which may hold a token."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _first_line(text: str) -> str:
    return next((line.strip()[:200] for line in storable(text).splitlines() if line.strip()), "")


def _trim(remembered: OrderedDict[UUID, float] | OrderedDict[UUID, None]) -> None:
    while len(remembered) > _REMEMBERED:
        remembered.popitem(last=False)


_MOST_BYTES = 2**16
"""The longest answer; the rest of a longer one is not read."""


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """The answer: its status, and the text as far as it was read."""

    status: int
    text: str


def post(url: str, body: bytes, headers: Mapping[str, str], seconds: float) -> WebhookAnswer:
    """Send the body, which is JSON, and read the answer. Raises what `post_within` raises."""
    return asyncio.run(post_within(url, body, {"content-type": "application/json", **headers}, seconds))


async def post_within(url: str, body: bytes, headers: Mapping[str, str], seconds: float) -> WebhookAnswer:
    """Send the body and read the answer.

    Raises TimeoutError when the whole answer was not there after `seconds`, and what httpx raises.
    """
    # httpx bounds each read, and a total is what a byte every two seconds needs
    async with (
        asyncio.timeout(seconds),
        httpx.AsyncClient(timeout=seconds, verify=_trusted()) as client,
        client.stream("POST", url, content=body, headers=headers) as answer,
    ):
        content = bytearray()
        async for part in answer.aiter_bytes():
            content += part
            if len(content) >= _MOST_BYTES:
                break
        return WebhookAnswer(answer.status_code, bytes(content).decode(answer.encoding or "utf-8", "replace"))


def why_not_reached(error: BaseException) -> str:
    """Why a webhook could not be called, without its address, which may hold a secret."""
    for cause in _causes(error):
        match cause:
            case socket.gaierror():
                return "no machine of its name is known"
            case ConnectionRefusedError():
                return "nothing listens there"
            case ssl.SSLCertVerificationError():
                return "its certificate is not trusted here"
            case ssl.SSLError():
                return "it does not speak TLS as it should"
    return type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@cache
def _trusted() -> ssl.SSLContext:
    """Made once: to read the certificates of the machine costs more than all else of a request."""
    return httpx.create_ssl_context()
