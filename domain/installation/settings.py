"""Settings: values from a process's environment, checked once."""

from collections.abc import Mapping
from typing import Self
from urllib.parse import parse_qsl, unquote, urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from domain.text.errors import InvalidInputError


def absolute(path: object) -> object:
    """A path that is the same wherever the process runs. Raises ValueError for any other."""
    if not str(path).startswith("/"):
        raise ValueError(path)
    return path


REPLICA_PORTS = range(20_000, 30_000)
_FEWEST_PORTS = 300
"""More than the 256 that one process of a replica may hold, or it could hold them all and not be ended."""
RIGHT_PORTS = (
    f"the first and the last of a range of {_FEWEST_PORTS} ports or more, from 1024 to 32767, as in 20000-29999"
)
_CHOOSABLE = range(1024, 32_768)
"""Below the ports of outgoing connections, 32768 to 60999 on Linux: none takes a port before its replica listens."""


def ports_between(text: str) -> range:
    """The range of '20000-29999', where both ends are included. Raises ValueError."""
    first, _, last = text.partition("-")
    ports = range(int(first), int(last) + 1)
    if len(ports) < _FEWEST_PORTS or ports[0] not in _CHOOSABLE or ports[-1] not in _CHOOSABLE:
        raise ValueError(RIGHT_PORTS)
    return ports


class Settings(BaseModel):
    """Values from environment variables, or given by field name.

    A field's `validation_alias` is its variable, its `description` says what is right there, and `repr=False` marks a
    secret, which no message shows.
    """

    model_config = ConfigDict(frozen=True, validate_by_name=True)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """A variable that is empty counts as not set. Raises InvalidInputError naming the first that is wrong."""
        variables = {str(field.validation_alias): field for field in cls.model_fields.values()}
        values = {name: environment[name] for name in variables if environment.get(name)}
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            name = str(error.errors()[0]["loc"][0])
        right = variables[name].description
        if name not in values:
            message = f"{name} is not set; it is {right}, or run 'rollway up'"
        else:
            hint = f", not {values[name]!r}" if variables[name].repr else ""
            message = f"{name} must be {right}{hint}"
        raise InvalidInputError(message, field=name)


_MEGABYTE = 1024 * 1024


class LogLimits(Settings):
    """Limits of a host's logs of replicas and stack: how big they may become, and how long those of the ended stay."""

    megabytes: float = Field(
        10,
        ge=0.01,
        le=100_000,
        validation_alias="ROLLWAY_LOG_MEGABYTES",
        description="a number of megabytes from 0.01 to 100000",
    )
    """The size at which a log of a replica or of the stack is rotated."""
    files: int = Field(
        2, ge=1, le=100, validation_alias="ROLLWAY_LOG_FILES", description="a number of files from 1 to 100"
    )
    """The most files of each log, with the current one."""
    ended_days: float = Field(
        7, ge=0, le=36_500, validation_alias="ROLLWAY_KEEP_LOGS_DAYS", description="a number of days from 0 to 36500"
    )
    """The time for which the log of an ended replica stays, from its last line on."""
    ended_megabytes: float = Field(
        1000,
        ge=0,
        le=100_000_000,
        validation_alias="ROLLWAY_KEEP_LOGS_MEGABYTES",
        description="a number of megabytes from 0 to 100000000",
    )
    """The most megabytes of logs of ended replicas on a host; beyond it the oldest go."""

    @property
    def most_bytes(self) -> int:
        return int(self.megabytes * _MEGABYTE)

    @property
    def most_ended_bytes(self) -> int:
        return int(self.ended_megabytes * _MEGABYTE)


_DRIVERS_END, _USUAL_PORT = "://", "5432"


def libpq_url(url: str) -> str:
    """The URL as PostgreSQL's own library reads it, from any form that is in use; one that is none of them as it is.

    postgresql+psycopg://u:p@h1:5432/db              -> postgresql://u:p@h1:5432/db
    postgresql://u:p@/db?host=h1:5432&host=h2:5433   -> postgresql://u:p@/db?host=h1%2Ch2&port=5432%2C5433
    postgresql://u:p@/db?host=h1&host=h2&port=5433   -> postgresql://u:p@/db?host=h1%2Ch2&port=5433%2C5433
    postgresql://u:p@h1:5432,h2/db?target_session_attrs=read-write, libpq's own form, stays as it is
    """
    scheme, separator, rest = url.partition(_DRIVERS_END)
    if not separator or scheme.partition("+")[0] not in ("postgresql", "postgres"):
        return url
    before, _, query = rest.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    hosts = [value for name, value in pairs if name == "host"]
    if len(hosts) > 1 or any(_has_port(host) for host in hosts):
        usual = [port for name, value in pairs if name == "port" for port in value.split(",")] or [_USUAL_PORT]
        each = [_host_and_port(host, usual[min(at, len(usual) - 1)]) for at, host in enumerate(hosts)]
        names, ports = zip(*each, strict=True)
        others = [(name, value) for name, value in pairs if name not in ("host", "port")]
        query = urlencode([*others, ("host", ",".join(names)), ("port", ",".join(ports))])
    return f"postgresql://{before}" + (f"?{query}" if query else "")


def database_address(url: str) -> str:
    """host:port/database, with a comma between hosts; never a user or a password.

    A host is empty where the URL names none, and the folder of a Unix socket begins with a slash. Where a password is
    written so that nobody can tell where it ends, there is no address to show.
    """
    before, _, query = libpq_url(url).partition(_DRIVERS_END)[2].partition("?")
    authority, _, database = before.partition("/")
    if "@" in database:
        return "the address of DATABASE_URL"
    options = dict(parse_qsl(query))
    hosts_and_ports = [_host_and_port(host) for host in authority.rpartition("@")[2].split(",")]
    hosts = options["host"].split(",") if options.get("host") else [host for host, _ in hosts_and_ports]
    ports = options["port"].split(",") if options.get("port") else [port for _, port in hosts_and_ports]
    addresses = (f"{host}:{ports[min(at, len(ports) - 1)]}" for at, host in enumerate(hosts))
    return f"{','.join(addresses)}/{unquote(options.get('dbname', database))}"


def _has_port(host: str) -> bool:
    return not host.startswith("/") and ":" in host.rpartition("]")[2]


def _host_and_port(host: str, usual: str = _USUAL_PORT) -> tuple[str, str]:
    if not _has_port(host):
        return unquote(host), usual
    name, _, port = host.rpartition(":")
    return unquote(name), port or usual


_MOST_DAYS = 36_500
_MOST_ROWS = 1_000_000


def _days(variable: str, default: float, least: float = 0) -> float:
    right = f"a number of days from {least:g} to {_MOST_DAYS}; 0.01 is a quarter of an hour"
    field: float = Field(default, ge=least, le=_MOST_DAYS, validation_alias=variable, description=right)
    return field


def _count(variable: str, default: int) -> int:
    right = f"a number from 1 to {_MOST_ROWS}"
    field: int = Field(default, ge=1, le=_MOST_ROWS, validation_alias=variable, description=right)
    return field


class Retention(Settings):
    """The days that something is kept, and how many of it are kept of each deployment, however old they are.

    Cut is what is older than its days, is not among the newest of its deployment, and that nothing needs:

        history      a record       not the last one, which the next may merge into; not of the open rollout
                                    the records of the fleet as a whole are counted as those of one deployment
        routes       a replica      terminated or failed, and stopped; not of the open rollout
        rollouts     with its steps ended; no way back leads along it; no record and no replica names it
        revisions                   not current, deploying or failing now; no rollout and no replica names it
        commands     a request id   by its age alone: sent again later, it is a new request
        destroyed    a deployment   all of it, by the days since its end alone
        ended        a token that has expired, a freeze that has ended, a host that has been down: by these days alone

    A way back leads along the newest completed rollouts, along the last one that led to the current revision, and along
    the last rollout to each revision that one of these names: so `undo` and `retry` do what they would have done.
    The steps of a rollout that is kept are all kept: each can be decided again.
    """

    history_days: float = _days("ROLLWAY_KEEP_HISTORY_DAYS", 30)
    """The time for which a record of the timeline is kept."""
    history_count: int = _count("ROLLWAY_KEEP_HISTORY_COUNT", 200)
    """The number of records that each deployment keeps, however old."""
    routes_days: float = _days("ROLLWAY_KEEP_ROUTES_DAYS", 7)
    """The time for which a replica that has stopped is kept."""
    routes_count: int = _count("ROLLWAY_KEEP_ROUTES_COUNT", 50)
    """The number of stopped replicas that each deployment keeps, however old."""
    rollouts_days: float = _days("ROLLWAY_KEEP_ROLLOUTS_DAYS", 30)
    """The time for which a rollout that has ended is kept, with its steps."""
    rollouts_count: int = _count("ROLLWAY_KEEP_ROLLOUTS_COUNT", 20)
    """The number of ended rollouts that each deployment keeps, however old."""
    revisions_days: float = _days("ROLLWAY_KEEP_REVISIONS_DAYS", 90)
    """The time for which a revision that nothing needs is kept."""
    revisions_count: int = _count("ROLLWAY_KEEP_REVISIONS_COUNT", 20)
    """The number of revisions that each deployment keeps, however old."""
    commands_days: float = _days("ROLLWAY_KEEP_COMMANDS_DAYS", 7, least=0.001)
    """The time for which a request id is known."""
    destroyed_days: float = _days("ROLLWAY_KEEP_DESTROYED_DAYS", 30)
    """The time for which a destroyed deployment is kept."""
    ended_days: float = _days("ROLLWAY_KEEP_ENDED_DAYS", 30)
    """The time for which an expired token, an ended freeze and a host that is down are kept."""
