"""Reads the metrics of replicas: one GET for each Prometheus text page, all at once."""

import asyncio
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families

from domain.autoscaling.scaling_decision import MetricSample
from domain.traffic.tls import ReplicaTls
from runtime.probing.http1 import context_of

TIMEOUT_SECONDS = 2.0
MAX_BYTES = 4 * 1024 * 1024
"""A longer page is not read: a page holds a few kilobytes, and an endless one must not fill the worker."""
MAX_LINES = 2000
"""The most lines of metrics, on one page: parsing takes about 10 µs each, and holds up the other pages."""

_OK = 200


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """Ask the replica at `address` (host:port) for `path`, and read only these metrics on it. `tls`: None: without."""

    address: str
    path: str
    metrics: frozenset[str]
    tls: ReplicaTls | None = None


def read_pages(pages: Collection[MetricsPage]) -> dict[MetricsPage, tuple[MetricSample, ...]]:
    """The samples on each page, after `TIMEOUT_SECONDS` at the latest; a page that gave no answer is left out."""
    return asyncio.run(_read_all(set(pages))) if pages else {}


async def _read_all(pages: Collection[MetricsPage]) -> dict[MetricsPage, tuple[MetricSample, ...]]:
    by_tls = [[page for page in pages if page.tls == tls] for tls in {page.tls for page in pages}]
    samples: dict[MetricsPage, tuple[MetricSample, ...]] = {}
    for part in await asyncio.gather(*map(_read_alike, by_tls)):
        samples |= part
    return samples


async def _read_alike(pages: Sequence[MetricsPage]) -> dict[MetricsPage, tuple[MetricSample, ...]]:
    """Read pages of replicas that are all asked in clear text, or by the same TLS."""
    tls = pages[0].tls
    try:
        secure = context_of(tls, "http1") if tls else False  # loading the certificates of systems takes 0.1 s
    except OSError:
        return {}
    async with httpx.AsyncClient(
        headers={"User-Agent": "rollway-metrics", "Accept": "text/plain;version=0.0.4", "Accept-Encoding": "identity"},
        follow_redirects=False,
        trust_env=False,
        verify=secure,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
    ) as client:
        answers = await asyncio.gather(*(_fetch(client, page) for page in pages))
    return {page: samples for page, samples in zip(pages, answers, strict=True) if samples is not None}


async def _fetch(client: httpx.AsyncClient, page: MetricsPage) -> tuple[MetricSample, ...] | None:
    """The samples of one page; None for anything but a page of metrics. Never raises."""
    extensions = {"sni_hostname": page.tls.name} if page.tls else {}
    url = f"{'https' if page.tls else 'http'}://{page.address}{page.path}"
    try:
        async with (
            asyncio.timeout(TIMEOUT_SECONDS),
            client.stream("GET", url, timeout=None, extensions=extensions) as response,
        ):
            body = await _body(response) if response.status_code == _OK else None
    except (TimeoutError, httpx.TransportError, httpx.InvalidURL, ValueError):
        return None
    return None if body is None else samples_in(body, page.metrics)


async def _body(response: httpx.Response) -> bytes | None:
    """The body, None when it is too long. It is read raw, so that nothing small unpacks into something large."""
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_BYTES:
            return None
    return bytes(body)


def samples_in(body: bytes, metrics: Collection[str]) -> tuple[MetricSample, ...] | None:
    """The samples of these metrics; None when a line of theirs cannot be read, or when there are too many.

    Lines of other metrics are skipped unread.
    """
    names = "|".join(re.escape(name) for name in metrics)
    lines = re.findall(rf"^[ \t]*(?:{names})[ \t{{].*$".encode(), body, re.MULTILINE)
    if len(lines) > MAX_LINES:
        return None
    try:
        text = b"\n".join(lines).decode() + "\n"
        return tuple(
            MetricSample(sample.name, sample.labels, sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        )
    except (ValueError, IndexError):  # what the parser raises for lines that are none
        return None
