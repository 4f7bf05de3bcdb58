"""Makes the plan for a start: checks servers of others, prepares the embedded ones."""

import socket
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from domain.installation.settings import LogLimits
from stack.home.folder import Home, project_root
from stack.home.server_settings import HOST, Ports, ServerSettings, choose_settings, load_settings
from stack.home.sockets import POSTGRES_SOCKET, sockets_folder
from stack.home.stack_state import StackState
from stack.part_specs import External, Ready, StackPart, StackPlan
from stack.parts.envoy import envoy_handover, envoy_host, envoys_wanted
from stack.parts.external_servers import check_database, check_redis
from stack.parts.postgres import admit_by_socket, postgres_part, postgres_url, prepare_data, reset_password
from stack.parts.postgres_account import ServerAccount, choose_account, installed_tree
from stack.parts.processes import ProcessList, ProcessSetting, default_workers, measured_processes
from stack.parts.replica_accounts import choose_replica_user, refuse_replica_users
from stack.parts.valkey import redis_url, valkey_part
from stack.stack_errors import StackError
from traffic.edge_settings import InFront


@dataclass(frozen=True, slots=True, kw_only=True)
class UpRequest:
    """A request to start. In `environ`, DATABASE_URL and REDIS_URL replace servers, and ROLLWAY_ENVOY=off Envoy.

    Without a number of workers it is what it was, else one for each core. ROLLWAY_PROXY_KEY and ROLLWAY_CERTIFICATE_KEY
    replace the keys that were made for this stack, and ROLLWAY_ENVOY_HOST is where its Envoy listens.
    """

    home: Home
    environ: Mapping[str, str]
    workers: int | None = None
    ports: Ports = field(default_factory=Ports)

    @property
    def environment(self) -> dict[str, str]:
        """The part of `environ` that decides how the stack runs; a later supervisor must get the same."""
        return {name: value for name, value in self.environ.items() if decides(name)}

    def remembering(self, state: StackState) -> "UpRequest":
        """The request for a stack that runs, or whose replicas still serve.

        it runs              -> what decides how is as it was, whatever the shell says now
        replicas serve on    -> what the shell says, and else what was; a variable that is set to nothing is forgotten

        Raises StackError where replicas that serve on would be left to nobody.
        """
        others = {name: value for name, value in self.environ.items() if not decides(name)}
        environment = dict(state.environment)
        if state.phase == "serving":
            environment = {name: value for name, value in {**environment, **self.environment}.items() if value}
            _refuse_another_host(_host(state.environment), _host(environment))
        return replace(self, environ={**others, **environment}, workers=self.workers or state.workers)

    def unheard(self, environment: Mapping[str, str]) -> list[str]:
        """The variables whose value in the shell differs from that of the running stack."""
        return sorted(name for name, value in self.environment.items() if value != environment.get(name, ""))


def decides(name: str) -> bool:
    """Whether a variable of this name decides how the stack runs."""
    is_setting = name.startswith("ROLLWAY_") and name not in {"ROLLWAY_HOME", "ROLLWAY_URL", "ROLLWAY_TOKEN"}
    return is_setting or name in {"DATABASE_URL", "REDIS_URL"}


def _host(environment: Mapping[str, str]) -> str:
    return environment.get("ROLLWAY_HOST") or socket.gethostname()


def _refuse_another_host(was: str, requested: str) -> None:
    if requested != was:
        raise StackError(
            f"What serves on here belongs to the host {was!r}: leave ROLLWAY_HOST as it was, or 'rollway down' ends it."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One line of progress about one part."""

    part: str
    text: str
    address: str = ""


Say = Callable[[Notice], None]


def make_plan(
    request: UpRequest, processes: ProcessList, say: Say, running: Collection[str], claims: ExitStack
) -> StackPlan:
    """Check the external servers and prepare the embedded ones. Raises StackError or InvalidInputError: one sentence.

    Parts that are `running` keep their ports, and their data is left alone; `claims` keep the other ports for them.
    """
    LogLimits.from_environment(request.environ)  # which the supervisor reads, where nobody is told of a mistake
    envoys = envoys_wanted(request.environ)
    external = list(_external(request, say))
    lost_password = _lost_password(request.home, running)
    workers = request.workers or default_workers()
    account = None if request.environ.get("DATABASE_URL") else _postgres_account(request.home, running)
    refuse_replica_users(request.home, request.environ, account.user if account else None)
    settings = _choose(request, workers, say, running, claims)
    sockets = settings.named_sockets
    database_url = request.environ.get("DATABASE_URL") or postgres_url(sockets.postgres, settings.postgres_password)
    broker_url = request.environ.get("REDIS_URL") or redis_url(sockets.valkey, settings.redis_password)
    servers: list[StackPart] = []
    if account:
        if "postgres" not in running:
            _prepare_postgres(request.home, account, settings, say, lost_password=lost_password)
        else:
            admit_by_socket(request.home.postgres / "data")
        servers.append(postgres_part(request.home.postgres / "data", account))
    if not request.environ.get("REDIS_URL"):
        servers.append(valkey_part(request.home.valkey, settings.redis_password, settings.redis_users))
    setting = ProcessSetting(
        home=request.home,
        database_url=database_url,
        redis_url=broker_url,
        workers=workers,
        servers=settings,
        envoys=envoys,
    )
    return StackPlan(
        database_url=database_url,
        redis_url=broker_url,
        parts=(*servers, *processes(setting), *forwarding_parts(settings, external)),
        external=tuple(external),
        workers=workers,
        environment=request.environment,
    )


def _lost_password(home: Home, running: Collection[str]) -> bool:
    lost = load_settings(home) is None
    if lost and running:
        raise StackError(
            f"{home.servers_file} is gone while the servers run, so nobody knows their passwords: "
            "'rollway down' and 'rollway up' make new ones."
        )
    return lost


def _choose(request: UpRequest, workers: int, say: Say, running: Collection[str], claims: ExitStack) -> ServerSettings:
    processes = measured_processes(workers)
    user_named = request.environ.get("ROLLWAY_REPLICA_USER", "")

    def initial_settings(last: ServerSettings | None) -> ServerSettings:
        base = last or ServerSettings(replica_user="")
        user = user_named or choose_replica_user(request.home, base.replica_user, partial(_say_replicas, say))
        return replace(base, replica_user=user, sockets=sockets_folder(request.home, base.sockets))

    settings = choose_settings(
        request.home, request.ports, partial(_say_moved, say), running, processes, claims, initial_settings
    )
    return replace(
        settings,
        proxy_key=request.environ.get("ROLLWAY_PROXY_KEY") or settings.proxy_key,
        certificate_key=request.environ.get("ROLLWAY_CERTIFICATE_KEY") or settings.certificate_key,
        envoy_host=envoy_host(request.environ),
        in_front=InFront.from_environment(request.environ),
        envoy_handover_seconds=envoy_handover(request.environ),
    )


def _postgres_account(home: Home, running: Collection[str]) -> ServerAccount:
    """The account PostgreSQL runs under; a running server keeps its account."""
    data = home.postgres / "data"
    return choose_account(installed_tree(), data.stat().st_uid if "postgres" in running and data.exists() else None)


def _say_moved(say: Say, text: str) -> None:
    say(Notice(part="ports", text=text))


def _say_replicas(say: Say, text: str) -> None:
    say(Notice(part="replicas", text=text))


def _external(request: UpRequest, say: Say) -> list[External]:
    servers = []
    if url := request.environ.get("DATABASE_URL"):
        servers.append(External(name="postgres", address=check_database(url)))
    if url := request.environ.get("REDIS_URL"):
        servers.append(
            External(name="redis", address=check_redis(url, lambda text: say(Notice(part="redis", text=text))))
        )
    return servers


def _prepare_postgres(
    home: Home, account: ServerAccount, settings: ServerSettings, say: Say, *, lost_password: bool
) -> None:
    existed = (home.postgres / "data").exists()
    data = prepare_data(
        home.postgres,
        account,
        settings.postgres_password,
        say=lambda text: say(Notice(part="postgres", text=text)),
    )
    if existed and lost_password:
        reset_password(data, account, settings.postgres_password)


def forwarding_parts(settings: ServerSettings, external: Sequence[External]) -> tuple[StackPart, ...]:
    """A part for each requested port; servers of somebody else have ports of their own."""
    sockets = settings.named_sockets
    targets = {"postgres": sockets.postgres / POSTGRES_SOCKET, "redis": sockets.valkey, "discovery": sockets.discovery}
    theirs = {server.name for server in external}
    return tuple(
        _forwarding(name, port, targets[name])
        for name, port in sorted(settings.ports.forwarded.items())
        if name not in theirs
    )


def _forwarding(name: str, port: int, target: Path) -> StackPart:
    return StackPart(
        name=f"{name}-port",
        command=(sys.executable, "-m", "stack.forward", str(target)),
        cwd=str(project_root()),
        ready=Ready("port", str(port)),
        address=f"{HOST}:{port}",
        listens=(HOST, port),
        grace=2.0,
    )
