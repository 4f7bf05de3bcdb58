"""Callers of one deployment behind a proxy, who ask on and on while a test does something else."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event

from tests.support.proxies import plain_http
from tests.support.stack.waiting import eventually

CALLERS, PAUSE_SECONDS = 4, 0.08


@dataclass
class Callers:
    """About 50 requests a second in all, as long as they run. What became of them: (status, revision)."""

    url: str
    host: str
    method: str = "GET"
    answers: Counter[tuple[int, str]] = field(default_factory=Counter)
    over: Event = field(default_factory=Event)

    def ask(self) -> None:
        while not self.over.wait(PAUSE_SECONDS):
            answer = plain_http.request(self.method, self.url, headers={"Host": self.host})
            revision = answer.json()["revision"] if answer.headers["Content-Type"] == "application/json" else ""
            self.answers[answer.status_code, revision] += 1

    @property
    def failed(self) -> int:
        return sum(count for (status, _), count in self.answers.items() if status != 200)


@contextmanager
def asked(envoy: str, name: str, method: str = "GET") -> Iterator[Callers]:
    callers = Callers(f"{envoy}/", name, method)
    eventually(lambda: plain_http.get(callers.url, headers={"Host": name}).is_success, what="a route")
    with ThreadPoolExecutor(CALLERS) as pool:
        try:
            running = [pool.submit(callers.ask) for _ in range(CALLERS)]
            yield callers
        finally:
            callers.over.set()
        for each in running:
            each.result()
