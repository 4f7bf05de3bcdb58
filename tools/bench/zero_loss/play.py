"""One run: the stack is up, the load begins, and one phase follows the other."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx

from cli.demo.load.generator import LoadSettings
from cli.demo.load.tally import LoadReport
from stack.home.folder import Home
from stack.home.server_settings import HOST, load_settings
from tests.support.certificates.authorities import Authority, shown
from tests.support.stack.waiting import NotInTimeError, eventually
from tools.bench.load import LoadError, LoadProcess, running_load
from tools.bench.zero_loss.faults import address_of, signal_workers
from tools.bench.zero_loss.phases import NOTHING, Phase
from tools.bench.zero_loss.service import ScenarioError, Service
from tools.bench.zero_loss.traefik import behind_traefik
from tools.bench.zero_loss.verdict import Drained, Played

_LONGEST_PHASE = 180.0
_PATIENCE = 30.0
_MARGIN = 0.5


@dataclass(frozen=True, slots=True)
class Setting:
    """How hard and how long. `seconds`: the least for each phase. `longest`: what a slow request takes at most.

    `patience`: the seconds after which an answer counts as lost. `certificates`: a folder of an authority's; with it
    callers come by HTTPS, without it in clear text. `traefik`: they come through a Traefik in place of Envoy.
    """

    rate: float
    seconds: float
    seed: int
    replicas: int
    longest: float
    patience: float
    certificates: Path | None = None
    traefik: bool = False


@dataclass(frozen=True, slots=True)
class Recording:
    """What was seen."""

    played: tuple[Played, ...]
    load: LoadReport
    drains: Drained


def play(home: Home, phases: Sequence[Phase], setting: Setting, say: Callable[[str], None]) -> Recording:
    """All phases, or until one fails. Raises ScenarioError and LoadError when not even the first can begin."""
    service = Service("web", setting.replicas, setting.longest + _MARGIN)
    with ExitStack() as begun:
        begun.callback(signal_workers, home, signal.SIGCONT)
        begun.callback(service.close)
        service.create()
        envoy = begun.enter_context(behind_traefik(home)) if setting.traefik else address_of(home, "envoy")
        wait_until_reachable(envoy, service)
        host, trusted = f"{service.name}.localhost", ""
        if setting.certificates is not None:
            port = tls_port(home)
            envoy, trusted = f"{HOST}:{port}", secure(service, host, port, setting.certificates)
        load = LoadSettings(
            address=envoy,
            host=host,
            trusted=trusted,
            rate=setting.rate,
            seconds=len(phases) * (setting.seconds + _LONGEST_PHASE),
            seed=setting.seed,
            longest=setting.longest,
            timeout=setting.patience,
            connections=32,
            most_open=8000,
            waits=False,
            first_phase=phases[0].name,
        )
        with running_load(load) as running:
            played = []
            for part in _play_all(home, service, running, phases, setting.seconds):
                say(f"  {part.phase.title:<45} {part.seconds:5.1f} s  {part.error}")
                played.append(part)
            report = running.finish()
        return Recording(tuple(played), report, service.drains())


def wait_until_reachable(envoy: str, service: Service) -> None:
    """Wait until the proxy passes requests on. Raises NotInTimeError."""
    host = {"Host": f"{service.name}.localhost"}
    eventually(
        lambda: httpx.get(f"http://{envoy}/", headers=host, trust_env=False).is_success,
        _PATIENCE,
        f"Envoy at {envoy} to pass requests on to {service.name}",
    )


def tls_port(home: Home) -> int:
    """Where Envoy listens for HTTPS."""
    known = load_settings(home)
    assert known is not None
    return known.ports.envoy_tls


def secure(service: Service, host: str, port: int, folder: Path) -> str:
    """Have the service reached by TLS too, with a certificate of an authority; return the file of that one's."""
    authority = Authority.make()
    chain, key = authority.certify(host).written(folder)
    tls = {"certificate": f"file:{chain}", "key": f"file:{key}", "redirect": False}
    service.do("set_traffic", hosts=[host], tls=tls)
    trusted = folder / "ca.pem"
    trusted.write_text(authority.pem)
    eventually(partial(is_shown, port, host, authority), _PATIENCE, f"a certificate of {host}")
    return str(trusted)


def is_shown(port: int, host: str, authority: Authority) -> bool:
    """Whether a certificate of the authority is shown there."""
    try:
        return bool(shown(port, host, authority.context()))
    except OSError:
        return False


def _play_all(
    home: Home, service: Service, load: LoadProcess, phases: Sequence[Phase], least_seconds: float
) -> Iterator[Played]:
    for number, phase in enumerate(phases):
        if number:
            load.phase(phase.name)
        if phase.waits:
            time.sleep(service.longest_request)
        played = _play_one(phase, service, home)
        yield played
        if played.error:
            return
        time.sleep(max(0.0, least_seconds - played.seconds))


def _play_one(phase: Phase, service: Service, home: Home) -> Played:
    began = time.monotonic()
    try:
        noted, error = phase.act(service, home), ""
    except (ScenarioError, LoadError, NotInTimeError) as failed:
        noted, error = NOTHING, str(failed)
    return Played(phase, time.monotonic() - began, noted, error)
