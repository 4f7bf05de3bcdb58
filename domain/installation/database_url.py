"""The URL of PostgreSQL: in libpq's form, which may name several hosts, and as an address for people."""

from urllib.parse import parse_qsl, unquote, urlencode

_DRIVERS_END = "://"


def libpq_url(url: str) -> str:
    """The URL as PostgreSQL's own library reads it, from any form that is in use; one that is none of them as it is.

    postgresql+psycopg://u:p@h1:5432/db              -> postgresql://u:p@h1:5432/db
    postgresql://u:p@/db?host=h1:5432&host=h2:5433   -> postgresql://u:p@/db?host=h1%2Ch2&port=5432%2C5433
    postgresql://u:p@h1:5432,h2/db?target_session_attrs=read-write, libpq's own form, stays as it is
    """
    scheme, separator, rest = url.partition(_DRIVERS_END)
    if not separator or scheme.partition("+")[0] not in ("postgresql", "postgres"):
        return url
    before, _, query = rest.partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    hosts = [value for name, value in given if name == "host"]
    if len(hosts) > 1 or any(_has_port(host) for host in hosts):
        named, ports = zip(*map(_host_and_port, hosts), strict=True)
        others = [(name, value) for name, value in given if name not in ("host", "port")]
        query = urlencode([*others, ("host", ",".join(named)), ("port", ",".join(ports))])
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
    given = dict(parse_qsl(query))
    named = [_host_and_port(host) for host in authority.rpartition("@")[2].split(",")]
    hosts = given["host"].split(",") if given.get("host") else [host for host, _ in named]
    ports = given["port"].split(",") if given.get("port") else [port for _, port in named]
    shown = (f"{host}:{ports[min(at, len(ports) - 1)]}" for at, host in enumerate(hosts))
    return f"{','.join(shown)}/{unquote(given.get('dbname', database))}"


def _has_port(host: str) -> bool:
    return not host.startswith("/") and ":" in host.rpartition("]")[2]


def _host_and_port(host: str) -> tuple[str, str]:
    if not _has_port(host):
        return unquote(host), "5432"
    name, _, port = host.rpartition(":")
    return unquote(name), port or "5432"
