"""What happens under load, phase by phase. Each act returns when the service has settled again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from stack.home.folder import Home
from tools.bench.zero_loss.by_hand import restart_one_after_the_other
from tools.bench.zero_loss.canaries import JUDGED, freeze_the_canary, kill_the_canary
from tools.bench.zero_loss.faults import kill_envoy, kill_part, kill_supervisor, lose, rollway, wait_until_back
from tools.bench.zero_loss.frozen import freeze_a_replica, freeze_workers
from tools.bench.zero_loss.picture import Picture
from tools.bench.zero_loss.service import BLUE_GREEN, ROLLING, Service

_SLOW_START = "0.8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """What the verdict must know of an act. Times are Unix seconds.

    `killed_at`: when a replica was gone that was killed. `frozen`: when a replica froze, and when that was noticed.
    `away`: when an Envoy was killed, and when somebody listened in its place.
    `old` had left traffic at `promoted_at`, by the proxies' word. `never`: a revision that must not have answered.
    `fails`: a canary that fails whatever it is asked.
    """

    killed_at: float | None = None
    frozen: tuple[float, float] | None = None
    away: tuple[float, float] | None = None
    old: str = ""
    promoted_at: float | None = None
    never: str = ""
    fails: str = ""


NOTHING = Noted()
Act = Callable[[Service, Home], Noted]


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase. A fault is nothing that anybody plans; `counts`: whether its failures are ours.

    `waits`: it begins when the slow requests of the phase before are over, so that what it breaks is its own.
    """

    name: str
    title: str
    act: Act
    fault: bool = False
    counts: bool = True
    waits: bool = False


def _calm(_service: Service, _home: Home) -> Noted:
    return NOTHING


def _rolling_update(service: Service, _home: Home) -> Noted:
    service.complete(service.roll_out())
    return NOTHING


def _promotion(service: Service, _home: Home) -> Noted:
    blue, green = service.current, service.roll_out(BLUE_GREEN)

    def green_is_complete(now: Picture) -> bool:
        return sum(route.status == "healthy" for route in now.of(green)) == service.replicas

    service.wait(green_is_complete, f"{service.replicas} healthy {green} out of traffic")
    service.do("promote")
    service.wait(lambda _: service.left_traffic_at(blue), f"the proxies' word that {blue} is out of traffic")
    promoted_at = service.left_traffic_at(blue)
    service.complete(green)
    return Noted(old=blue, promoted_at=promoted_at)


def _canary(service: Service, _home: Home) -> Noted:
    service.complete(service.roll_out(JUDGED))
    return NOTHING


def _failing_canary(service: Service, _home: Home) -> Noted:
    new = service.roll_out(JUDGED, FAULTS='{"share": 1, "fault": 500}')
    service.wait(lambda _: service.outcome(new), f"its judge to abort {new}")
    service.settle()
    service.expect(new, "rolled_back")
    return Noted(fails=new)


def _abort(service: Service, _home: Home) -> Noted:
    new = service.roll_out(STARTUP_SECONDS=_SLOW_START)
    service.wait_for_middle(new)
    service.do("abort")
    service.settle()
    service.expect(new, "rolled_back")
    return NOTHING


def _broken(service: Service, _home: Home) -> Noted:
    new = service.roll_out({**ROLLING, "limits": {"failure_budget": 1}}, BROKEN="health")
    service.wait(lambda _: service.outcome(new), f"the end of the rollout to {new}")
    service.settle()
    service.expect(new, "rolled_back")
    return Noted(never=new)


def _scale(service: Service, _home: Home) -> Noted:
    usual = service.replicas
    for size in (usual + 2, max(2, usual - 2), usual):
        service.replicas = size
        service.do("scale", desired_replicas=size)
        service.settle()
    return NOTHING


def _killed(parts: Sequence[str], service: Service, home: Home) -> Noted:
    new = service.roll_out(STARTUP_SECONDS=_SLOW_START)
    service.wait_for_middle(new)
    for part, process in [(part, kill_part(home, part)) for part in parts]:
        wait_until_back(home, part, process)
    service.complete(new)
    return NOTHING


def _envoy_killed(service: Service, home: Home) -> Noted:
    new = service.roll_out(STARTUP_SECONDS=_SLOW_START)
    service.wait_for_middle(new)
    away = kill_envoy(home)
    service.complete(new)
    return Noted(away=away)


def _workers_frozen(service: Service, home: Home) -> Noted:
    new = service.roll_out(STARTUP_SECONDS=_SLOW_START)
    service.wait_for_middle(new)
    freeze_workers(home)
    service.complete(new)
    return NOTHING


def _own_stop(arguments: Sequence[str], service: Service, home: Home) -> Noted:
    """A stop of ours in the middle of a rollout, which then continues."""
    new = service.roll_out(STARTUP_SECONDS=_SLOW_START)
    service.wait_for_middle(new)
    if arguments[0] == "up":
        kill_supervisor(home)
    rollway(home, *arguments)
    service.complete(new)
    return NOTHING


def _replica_killed(service: Service, _home: Home) -> Noted:
    killed_at = lose(service, service.look().of(service.current)[0])
    service.settle()
    return Noted(killed_at=killed_at)


def _replica_frozen(service: Service, _home: Home) -> Noted:
    return Noted(frozen=freeze_a_replica(service))


def _canary_killed(service: Service, _home: Home) -> Noted:
    return Noted(killed_at=kill_the_canary(service))


def _canary_frozen(service: Service, _home: Home) -> Noted:
    return Noted(frozen=freeze_the_canary(service))


def _by_hand(service: Service, home: Home) -> Noted:
    restart_one_after_the_other(service, home)
    return NOTHING


PHASES = (
    Phase("calm", "nothing happens", _calm),
    Phase("rolling", "rolling update", _rolling_update),
    Phase("promotion", "blue-green promotion", _promotion),
    Phase("canary", "canary, promoted by its judge", _canary),
    Phase("failing-canary", "canary that fails everything, at 5 %", _failing_canary),
    Phase("abort", "abort in the middle", _abort),
    Phase("broken", "broken revision, rolled back by itself", _broken),
    Phase("scale", "scale up and down", _scale),
    Phase("restart", "rollway restart in a rollout", partial(_own_stop, ["restart"])),
    Phase("takeover", "supervisor killed -9 in a rollout, rollway up", partial(_own_stop, ["up"])),
    Phase("envoy", "Envoy restarted in a rollout", partial(_own_stop, ["restart", "--part", "envoy"])),
    Phase("worker", "worker killed -9 in a rollout", partial(_killed, ["worker1"]), fault=True),
    Phase("both-workers", "both workers killed -9 in a rollout", partial(_killed, ["worker1", "worker2"]), fault=True),
    Phase("beat", "beat killed -9 in a rollout", partial(_killed, ["beat"]), fault=True),
    Phase("workers", "workers and beat frozen in a rollout", _workers_frozen, fault=True),
    Phase("redis", "Redis killed -9 in a rollout", partial(_killed, ["valkey"]), fault=True),
    Phase("postgres", "Postgres killed -9 in a rollout", partial(_killed, ["postgres"]), fault=True),
    Phase("xds", "xDS server killed -9 in a rollout", partial(_killed, ["api"]), fault=True),
    Phase("envoy-killed", "Envoy killed -9 in a rollout", _envoy_killed, fault=True, waits=True),
    Phase("replica", "replica killed -9", _replica_killed, fault=True, waits=True),
    Phase("frozen", "replica frozen", _replica_frozen, fault=True, waits=True),
    Phase("canary-killed", "a canary's only replica killed -9", _canary_killed, fault=True, waits=True),
    Phase("canary-frozen", "a canary's only replica frozen", _canary_frozen, fault=True, waits=True),
    Phase("by-hand", "without Rollway: replicas restarted by hand", _by_hand, counts=False, waits=True),
)
