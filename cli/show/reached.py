"""Says where a deployment is reached, as something to click on when this machine's stack runs an Envoy."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from db.certificates.wanted import hosts_without
from db.views.fleet.entrances import ReachedView
from domain.traffic.published import EntranceKind
from domain.traffic.worded import entrances_in_words, rules_in_words

_LOOPBACK = ".localhost"


def urls_of(reached: ReachedView, envoy: str) -> list[str]:
    """URLs that work without a name server: *.localhost, which is every machine itself, and path prefixes."""
    if not envoy:
        return []
    prefixes = [entrance.value for entrance in reached.entrances if entrance.kind is EntranceKind.PREFIX]
    local = [host for host in reached.hosts if host.endswith(_LOOPBACK) and not host.startswith("*.")]
    named = [f"http://{host}:{urlsplit(envoy).port}/" for host in local]
    return [*named, *(f"{envoy}{prefix}" for prefix in prefixes)]


def certificates_in_words(reached: ReachedView) -> Iterator[str]:
    """Say of each certificate how long it is good, or why there is none."""
    for found in reached.certificates:
        until = f"until {found.not_after:%Y-%m-%d %H:%M} UTC" if found.not_after else ""
        coming = "is ordered" if found.is_ordered else ""
        fault = f"not renewed: {found.fault}" if found.fault and until else found.fault or ""
        refused = f"a proxy does not show it: {found.refused}" if found.refused else ""
        known = "known" if found.is_of_authorities and not fault else ""
        said = "; ".join(filter(None, (until, coming, fault, refused, found.doubt, known)))
        yield f"{found.title}: {said or 'nobody has looked yet'}"
    yield from hosts_without(reached.certificates, reached.hosts)


def reached_in_words(reached: ReachedView, envoy: str) -> str:
    """http://web.localhost:8080/, http://127.0.0.1:8080/web/; hosts web, web.localhost."""
    urls = urls_of(reached, envoy)
    hosts = [entrance for entrance in reached.entrances if entrance.kind is EntranceKind.HOST]
    if not urls:
        return entrances_in_words(reached.entrances, reached.rules)
    named = f" (or with the host {entrances_in_words(hosts)})" if hosts else ""
    return f"{', '.join(urls)}{named}{rules_in_words(reached.rules)}"
