"""Makes the plan for a start: checks servers of others, prepares the embedded ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from stack.home import Home
from stack.parts.account import choose_account, installed_tree
from stack.parts.envoy import envoy_wanted
from stack.parts.external import check_database, check_redis
from stack.parts.postgres import postgres_part, postgres_url, prepare_data, remove_stale_pid_file, reset_password
from stack.parts.processes import ProcessList, ProcessSetting
from stack.parts.valkey import redis_url, valkey_part
from stack.plan import External, Part, Plan
from stack.settings import Ports, ServerSettings, choose_settings, load_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class UpRequest:
    """How to start. In `environ`, DATABASE_URL and REDIS_URL replace servers, and ROLLWAY_ENVOY=off Envoy.

    ROLLWAY_PROXY_KEY replaces the key that was made for this stack.
    """

    home: Home
    environ: Mapping[str, str]
    workers: int
    ports: Ports = field(default_factory=Ports)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One line of progress about one part."""

    part: str
    text: str
    address: str = ""


Say = Callable[[Notice], None]


def make_plan(request: UpRequest, processes: ProcessList, say: Say) -> Plan:
    """Check the external servers and prepare the embedded ones. Raises StackError with one sentence."""
    with_envoy = envoy_wanted(request.environ)
    external = list(_external(request))
    database_url, broker_url = request.environ.get("DATABASE_URL"), request.environ.get("REDIS_URL")
    lost_password = load_settings(request.home) is None
    settings = choose_settings(request.home, request.ports, lambda text: say(Notice(part="ports", text=text)))
    if key := request.environ.get("ROLLWAY_PROXY_KEY"):
        settings = replace(settings, proxy_key=key)
    servers: list[Part] = []
    if not database_url:
        database_url = postgres_url(settings.ports.postgres, settings.postgres_password)
        servers.append(_postgres(request.home, settings, say, lost_password=lost_password))
    if not broker_url:
        broker_url = redis_url(settings.ports.valkey, settings.redis_password)
        servers.append(valkey_part(request.home.valkey, settings.ports.valkey, settings.redis_password))
    setting = ProcessSetting(
        home=request.home,
        database_url=database_url,
        redis_url=broker_url,
        workers=request.workers,
        servers=settings,
        with_envoy=with_envoy,
    )
    return Plan(
        database_url=database_url,
        redis_url=broker_url,
        parts=(*servers, *processes(setting)),
        external=tuple(external),
    )


def _external(request: UpRequest) -> list[External]:
    found = []
    if url := request.environ.get("DATABASE_URL"):
        found.append(External(name="postgres", address=check_database(url)))
    if url := request.environ.get("REDIS_URL"):
        found.append(External(name="redis", address=check_redis(url)))
    return found


def _postgres(home: Home, settings: ServerSettings, say: Say, *, lost_password: bool) -> Part:
    account = choose_account(installed_tree())
    existed = (home.postgres / "data").exists()
    data = prepare_data(
        home.postgres,
        account,
        settings.postgres_password,
        say=lambda text: say(Notice(part="postgres", text=text)),
    )
    if existed and lost_password:
        remove_stale_pid_file(data / "postmaster.pid")
        reset_password(data, account, settings.postgres_password)
    return postgres_part(data, account, settings.ports.postgres)
