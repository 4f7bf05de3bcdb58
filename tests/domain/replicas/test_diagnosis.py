"""The advice about a replica that answers badly: the fault that is named first, and its remedy."""

from dataclasses import replace
from typing import Any

import pytest

from domain.replicas.diagnosis import PATIENCE_SECONDS, Examination, HeardAnswer, NoAnswer, advice, summary_of
from domain.revisions.health_check import HealthCheck

HOST, ADDRESS = "web.example.com", "10.0.0.5:8000"
OK, MISSING = HeardAnswer(200), HeardAnswer(404)
CUT = HeardAnswer(200, is_cut=True)
REFUSED = HeardAnswer(200, refusal="it has two Content-Length")
REFUSAL = (
    "proxies refuse its answer, so callers get 502: it has two Content-Length. Mend its headers, or what adds them"
)
COUNT_BYTES = "count bytes and not characters, or leave Content-Length out"


def silent(why: NoAnswer) -> HeardAnswer:
    return HeardAnswer(no_answer=why)


def redirect(status: int, location: str = f"https://{HOST}/") -> HeardAnswer:
    return HeardAnswer(status, location=location)


def examined(probed: HeardAnswer = OK, called: HeardAnswer = OK, *, check: Any = None, **known: Any) -> Examination:
    return Examination(ADDRESS, HealthCheck.model_validate(check or {}), probed, HOST, called, **known)


def said(examination: Examination, *words: str) -> None:
    """Its advice has each of these; without words there is none."""
    told = advice(examination)
    assert (told is None) == (not words)
    assert all(word in (told or "") for word in words), told


@pytest.mark.parametrize(
    ("probed", "check", "summary"),
    [
        (HeardAnswer(404, 0.014), {}, "GET /health answered 404 after 0.01 s"),
        (HeardAnswer(200, 1.5), {"path": "/up", "host": HOST}, f"GET /up as {HOST} answered 200 after 1.50 s"),
        (silent(NoAnswer.REFUSED), {}, f"GET /health at {ADDRESS}: nothing listens there"),
        (HeardAnswer(words="it says NOT_SERVING"), {"protocol": "grpc"}, "it says NOT_SERVING"),
        (replace(silent(NoAnswer.NOT_BELIEVED), words="its certificate is old"), {}, "its certificate is old"),
    ],
)
def test_the_result_of_a_probe_in_words(probed: HeardAnswer, check: dict[str, Any], summary: str) -> None:
    assert summary_of(examined(probed, check=check)) == summary


def test_an_examination_waits_for_ten_seconds_as_the_http_api_says() -> None:
    assert PATIENCE_SECONDS == 10


@pytest.mark.parametrize(
    ("status", "is_success"), [(None, False), (199, False), (200, True), (304, True), (399, True), (400, False)]
)
def test_a_probe_succeeds_by_2xx_and_3xx(status: int | None, *, is_success: bool) -> None:
    assert HeardAnswer(status).is_success is is_success


@pytest.mark.parametrize(
    ("why", "remedy"),
    [
        (NoAnswer.REFUSED, "it has opened no port yet: it still starts, or must be told its port, by {port} or PORT"),
        (NoAnswer.UNREACHABLE, "look at the host's firewall and at ROLLWAY_HOST_ADDRESS"),
        (NoAnswer.CLOSED, "it breaks at the question: 'rollway logs' shows what it printed"),
        (NoAnswer.SILENT, "it has too few workers, or waits for something itself"),
        (NoAnswer.NOT_HTTP, "another program may listen there"),
        (NoAnswer.HTTP2_ALONE, "set health_check.protocol and traffic.protocol to http2"),
        (NoAnswer.HTTP1_ALONE, "leave health_check.protocol out, or let it speak HTTP/2 without TLS"),
        (NoAnswer.TLS, "let it speak HTTP without TLS"),
        (NoAnswer.NOT_BELIEVED, "let traffic.upstream_tls say who certifies it (ca)"),
    ],
)
def test_a_request_without_an_answer_has_a_remedy_for_each_reason(why: NoAnswer, remedy: str) -> None:
    said(examined(silent(why)), remedy)


ITS_OWN = "inside of a container 127.0.0.1 is the container's own: let it listen at 0.0.0.0, and at PORT"


@pytest.mark.parametrize(
    ("why", "known", "remedy"),
    [
        (NoAnswer.REFUSED, {"listening": ("127.0.0.1:80",)}, f"it listens at 127.0.0.1:80: let it listen at {ADDRESS}"),
        (NoAnswer.REFUSED, {"listening": ("[::1]:80", "[::1]:81")}, "it listens at [::1]:80 and [::1]:81: let it"),
        (NoAnswer.CLOSED, {"listening": ("127.0.0.1:80",)}, "it breaks at the question"),
        (NoAnswer.REFUSED, {"is_container": True}, ITS_OWN),
        (NoAnswer.CLOSED, {"is_container": True}, ITS_OWN),
        (NoAnswer.SILENT, {"is_container": True}, "it has too few workers"),
    ],
)
def test_where_it_listens_is_part_of_the_remedy(why: NoAnswer, known: dict[str, Any], remedy: str) -> None:
    said(examined(silent(why), **known), remedy)


@pytest.mark.parametrize("status", [400, 403, 421])
def test_a_replica_that_answers_callers_and_no_probe_is_asked_by_their_name(status: int) -> None:
    refusal = HeardAnswer(status)
    said(
        examined(refusal),
        f"it answers {HOST} and not Host: {ADDRESS}, as which a probe asks: set health_check.host to {HOST}",
    )
    said(examined(refusal, check={"host": "other"}), "and not Host: other, as which")
    said(examined(refusal, HeardAnswer(500)), "let /health answer 200 to a plain GET")


FURTHER = {"/healthz": MISSING, "/up": OK, "/": OK}
USUAL = "/healthz or /health or /livez or /ready or /up or /ping or /status or /"


@pytest.mark.parametrize(
    ("status", "known", "remedy"),
    [
        (401, {}, "/health asks for a login: let it be open"),
        (407, {"paths": FURTHER}, "/health asks for a login"),
        (404, {"paths": FURTHER}, "it does not know /health, and answers /up: set health_check.path to /up"),
        (405, {"paths": FURTHER}, "it does not know /health, and answers /up: set health_check.path to /up"),
        (404, {"paths": {"/": MISSING}}, f"it does not know /health, nor {USUAL}: set health_check.path"),
        (404, {"check": {"path": "/alive"}}, f"it does not know /alive, nor {USUAL}: set"),
        (405, {}, "it takes no GET at /health: let it"),
        (500, {"paths": FURTHER}, "it fails at the question: 'rollway logs' shows what it printed"),
        (599, {}, "it fails at the question"),
        (600, {}, "it refuses the question: let /health answer 200 to a plain GET"),
        (418, {"paths": FURTHER}, "it refuses the question: let /health answer 200 to a plain GET"),
        (499, {}, "it refuses the question"),
        (199, {}, "it refuses the question"),
    ],
)
def test_a_probe_that_fails_is_mended_by_its_status(status: int, known: dict[str, Any], remedy: str) -> None:
    said(examined(HeardAnswer(status), **known), remedy)


@pytest.mark.parametrize(
    ("seconds", "limit", "remedy"),
    [
        (2.0, 2, ()),
        (2.1, 2, ("it takes longer than a probe waits (2 s): answer /health without", "timeout_seconds to 4")),
        (0.75, 0.5, ("it takes longer than a probe waits (0.5 s)", "timeout_seconds to 2")),
    ],
)
def test_a_late_answer_needs_less_work_or_twice_its_time(seconds: float, limit: float, remedy: tuple[str, ...]) -> None:
    said(examined(HeardAnswer(200, seconds), check={"timeout_seconds": limit}), *remedy)


SENT_ON = f"it sends callers on to https://{HOST}/, though they may have come by https"


@pytest.mark.parametrize(
    ("probed", "called", "words"),
    [
        (redirect(300), OK, (SENT_ON,)),
        (redirect(399), OK, (SENT_ON,)),
        (redirect(200), OK, ()),
        (redirect(302, "/login"), OK, ()),
        (redirect(302, f"http://{HOST}/"), OK, ()),
        (OK, redirect(308), (SENT_ON,)),
        (OK, redirect(299), ()),
        (OK, redirect(400), (f"a caller of {HOST} is answered 400",)),
    ],
)
def test_a_redirect_to_https_goes_round_in_a_circle(
    probed: HeardAnswer, called: HeardAnswer, words: tuple[str, ...]
) -> None:
    said(examined(probed, called), *words)


@pytest.mark.parametrize(
    ("called", "words"),
    [
        (OK, ()),
        (MISSING, ()),
        (HeardAnswer(500), ()),
        (silent(NoAnswer.CLOSED), ()),
        (REFUSED, (REFUSAL,)),
        (CUT, (COUNT_BYTES,)),
        (HeardAnswer(400), (f"a probe is content, and a caller of {HOST} is answered 400",)),
        (HeardAnswer(403), ("Django: ALLOWED_HOSTS",)),
        (HeardAnswer(421), ("let it take that host name",)),
    ],
)
def test_where_the_probe_succeeds_the_answer_to_callers_is_looked_at(
    called: HeardAnswer, words: tuple[str, ...]
) -> None:
    said(examined(OK, called), *words)


@pytest.mark.parametrize(
    ("probed", "words"),
    [
        (OK, ()),
        (HeardAnswer(words="it says NOT_SERVING"), ("let its health service (grpc.health.v1.Health) say SERVING",)),
        (CUT, (COUNT_BYTES,)),
        (HeardAnswer(200, seconds=60), ()),
    ],
)
def test_grpc_serves_or_does_not_and_callers_are_not_asked(probed: HeardAnswer, words: tuple[str, ...]) -> None:
    said(examined(probed, HeardAnswer(400), check={"protocol": "grpc"}), *words)


@pytest.mark.parametrize(
    ("worse", "better", "words"),
    [
        (REFUSED, silent(NoAnswer.SILENT), REFUSAL),
        (silent(NoAnswer.SILENT), CUT, "it has too few workers"),
        (CUT, MISSING, COUNT_BYTES),
        (MISSING, HeardAnswer(200, seconds=60), "it does not know /health"),
    ],
)
def test_of_two_faults_the_worse_is_named(worse: HeardAnswer, better: HeardAnswer, words: str) -> None:
    both = HeardAnswer(
        worse.status or better.status,
        max(worse.seconds, better.seconds),
        is_cut=worse.is_cut or better.is_cut,
        no_answer=worse.no_answer or better.no_answer,
        refusal=worse.refusal,
    )
    said(examined(both), words)
