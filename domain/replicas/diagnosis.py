"""Advice about a replica's answers: their faults and remedies; and in one line why a replica failed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.revisions.health_check import HealthCheck

PATIENCE_SECONDS = 10.0
"""The time that an examination waits for an answer, whatever the limit of a probe is."""
USUAL_PATHS = ("/healthz", "/health", "/livez", "/ready", "/up", "/ping", "/status", "/")
"""The paths that are tried where the replica does not know the path of its probe, the likeliest first."""
_SUCCESS = range(200, 400)
_REDIRECTS = range(300, 400)
_LOGINS = (401, 407)
_NOT_FOUND, _REFUSED_METHOD = 404, 405
_HOST_REFUSALS = (400, 403, 421)
_SERVER_ERRORS = range(500, 600)


class NoAnswer(StrEnum):
    """The reasons why a request got no answer; each completes a sentence about the address."""

    REFUSED = "nothing listens there"
    UNREACHABLE = "it cannot be reached"
    CLOSED = "the connection is taken and closed without an answer"
    SILENT = "the connection is taken, and nothing is answered"
    NOT_HTTP = "the answer is not HTTP"
    HTTP2_ALONE = "it speaks HTTP/2 alone"
    HTTP1_ALONE = "it speaks no HTTP/2"
    TLS = "it speaks TLS"
    NOT_BELIEVED = "its TLS is not believed"


@dataclass(frozen=True, slots=True)
class HeardAnswer:
    """The answer to one question, or why there is none. `is_cut`: its body is not as long as its Content-Length says.

    `location`: the target of a redirect. `seconds`: until the answer began. `words`: the result of a probe in another
    protocol than HTTP/1.1, or the fault of its TLS. `refusal`: what makes proxies refuse it.
    """

    status: int | None = None
    seconds: float = 0.0
    location: str = ""
    is_cut: bool = False
    no_answer: NoAnswer | None = None
    words: str = ""
    refusal: str = ""

    @property
    def is_success(self) -> bool:
        """Whether a probe counts it as a success."""
        return self.status in _SUCCESS


@dataclass(frozen=True, slots=True)
class Examination:
    """The answers of a replica at `address`, from its host.

    `probed`: to GET of the health path with the Host of probes, its address. `called`: to GET / with the Host of
    callers, `callers_host`. `paths`: the answers of further paths, where it does not know the health path. `listening`:
    the other addresses where its processes listen, as host:port; empty where none is known.
    """

    address: str
    check: HealthCheck
    probed: HeardAnswer
    callers_host: str
    called: HeardAnswer
    paths: Mapping[str, HeardAnswer] = field(default_factory=dict)
    listening: tuple[str, ...] = ()
    is_container: bool = False


def summary_of(examination: Examination) -> str:
    """The result of a probe in words: "GET /health answered 404 after 0.01 s"."""
    answer, request = examination.probed, examination.check.request_line
    if answer.words:
        return answer.words
    if answer.no_answer is not None:
        return f"{request} at {examination.address}: {answer.no_answer}"
    return f"{request} answered {answer.status} after {answer.seconds:.2f} s"


def advice(examination: Examination) -> str | None:
    """The remedy for the worst fault; None if a probe and a caller both get good answers."""
    probed, check = examination.probed, examination.check
    if probed.refusal:
        return _of_refusal(probed)
    if probed.no_answer is not None:
        return _of_no_answer(examination, probed.no_answer)
    if probed.is_cut:
        return _CUT
    if check.protocol == "grpc":
        return None if probed.is_success else _NOT_SERVING
    if probed.status in _HOST_REFUSALS and examination.called.is_success:
        return (
            f"it answers {examination.callers_host} and not Host: {check.host_header(examination.address)}, "
            f"as which a probe asks: set health_check.host to {examination.callers_host}"
        )
    if not probed.is_success:
        return _of_failure(examination, probed.status)
    if probed.seconds > check.timeout_seconds:
        return (
            f"it takes longer than a probe waits ({check.timeout_seconds:g} s): answer {check.path} without the "
            f"work that takes so long, or set health_check.timeout_seconds to {probed.seconds * 2:.0f}"
        )
    return _redirect(probed) or _of_callers(examination)


_CUT = (
    "the answer is not as long as its Content-Length says, so callers get a broken one: "
    "count bytes and not characters, or leave Content-Length out"
)
_NOT_SERVING = (
    "let its health service (grpc.health.v1.Health) say SERVING for that name, "
    "or set health_check.protocol to http2 and a path that it answers"
)


def _of_refusal(answer: HeardAnswer) -> str:
    return f"proxies refuse its answer, so callers get 502: {answer.refusal}. Mend its headers, or what adds them"


_MENDS: Mapping[NoAnswer, str] = {
    NoAnswer.REFUSED: "it has opened no port yet: it still starts, or must be told its port, by {port} or PORT",
    NoAnswer.UNREACHABLE: "a network is between: look at the host's firewall and at ROLLWAY_HOST_ADDRESS",
    NoAnswer.CLOSED: "it breaks at the question: 'rollway logs' shows what it printed",
    NoAnswer.SILENT: "it has too few workers, or waits for something itself: 'rollway logs' shows what it printed",
    NoAnswer.NOT_HTTP: "another program may listen there: 'rollway logs' shows what it printed",
    NoAnswer.HTTP2_ALONE: "set health_check.protocol and traffic.protocol to http2, or health_check.protocol to grpc",
    NoAnswer.HTTP1_ALONE: "leave health_check.protocol out, or let it speak HTTP/2 without TLS from the first byte on",
    NoAnswer.TLS: "let it speak HTTP without TLS, as proxies end that of callers; or say traffic.upstream_tls",
    NoAnswer.NOT_BELIEVED: (
        "let traffic.upstream_tls say who certifies it (ca) and for which name (server_name), "
        "or leave that out where it speaks no TLS"
    ),
}


def _of_no_answer(examination: Examination, why: NoAnswer) -> str:
    if why is NoAnswer.REFUSED and examination.listening:
        return (
            f"it listens at {' and '.join(examination.listening)}: let it listen at {examination.address}, "
            "by {host} and {port} in its command, or HOST and PORT of its environment"
        )
    if why in {NoAnswer.CLOSED, NoAnswer.REFUSED} and examination.is_container:
        return "inside of a container 127.0.0.1 is the container's own: let it listen at 0.0.0.0, and at PORT"
    return _MENDS[why]


def _of_failure(examination: Examination, status: int | None) -> str:
    path = examination.check.path
    better = next((path for path, answer in examination.paths.items() if answer.is_success), None)
    if status in _LOGINS:
        return f"{path} asks for a login: let it be open, or set health_check.path to one that is"
    if status in {_NOT_FOUND, _REFUSED_METHOD} and better:
        return f"it does not know {path}, and answers {better}: set health_check.path to {better}"
    if status == _NOT_FOUND:
        return f"it does not know {path}, nor {' or '.join(USUAL_PATHS)}: set health_check.path to one that it answers"
    if status == _REFUSED_METHOD:
        return f"it takes no GET at {path}: let it, or set health_check.path to one that it answers"
    if status in _SERVER_ERRORS:
        return "it fails at the question: 'rollway logs' shows what it printed"
    return f"it refuses the question: let {path} answer 200 to a plain GET, or set health_check.path to one that does"


def _redirect(answer: HeardAnswer) -> str | None:
    if answer.status not in _REDIRECTS or not answer.location.startswith("https://"):
        return None
    return (
        f"it sends callers on to {answer.location}, though they may have come by https: proxies speak HTTP to it, "
        "and say in x-forwarded-proto how the caller came. Let it believe that header, or leave https to traffic.tls"
    )


def _of_callers(examination: Examination) -> str | None:
    """The remedy for answers to callers, where the probe succeeds."""
    called, host = examination.called, examination.callers_host
    if called.refusal:
        return _of_refusal(called)
    if called.no_answer is not None:
        return None
    if called.is_cut:
        return _CUT
    if called.status in _HOST_REFUSALS:
        return (
            f"a probe is content, and a caller of {host} is answered {called.status}: "
            "let it take that host name (Django: ALLOWED_HOSTS)"
        )
    return _redirect(called)


_MOST_OF_REASON = 600
_LINES = 4
_MOST_OF_LINE = 160
_NAMES_THE_CAUSE = re.compile(r"(\w+\.)*\w*(Error|Exception)\b|panic:|fatal:", re.IGNORECASE)
"""The beginning of a line that names an exception in Python, Java and Node, a panic in Go, and other fatal errors."""


def failure_in_short(reason: str, log_tail: str | None) -> str:
    """The reason, the line of the log that names an error, and the last lines; at most some 1,500 characters.

    its process ended with exit code 3; its log ends: loading the model / out of memory
    its process ended with exit code 1; its log says: ModuleNotFoundError: No module named 'flask'; its log ends: bye
    """
    lines = [line.strip() for line in (log_tail or "").splitlines() if line.strip()]
    ends = lines[-_LINES:]
    cause = next((line for line in reversed(lines) if _NAMES_THE_CAUSE.match(line)), None)
    parts = [_cut(" ".join(reason.split()), _MOST_OF_REASON)]
    if cause is not None and cause != lines[-1]:
        parts.append(f"its log says: {_cut(cause, _MOST_OF_LINE)}")
        ends = [line for line in ends if line != cause]
    if ends:
        parts.append(f"its log ends: {' / '.join(_cut(line, _MOST_OF_LINE) for line in ends)}")
    return "; ".join(parts)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
