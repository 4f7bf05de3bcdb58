"""Envoy's listener for TLS, and the certificates that it shows as secrets."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache, partial
from typing import Any

from domain.traffic.tls_material import ShownCertificate, is_for
from traffic.envoy.bootstrap import filter_of_requests, for_callers, listener_filters
from traffic.envoy.clusters import believed
from traffic.envoy.envoy_names import as_in_a_file
from traffic.resources import Named, Resource, listing, resource
from traffic.routing_table import Service, TlsDoor

LISTENER = "rollway-tls"
HTTP3 = "rollway-http3"
Chains = Callable[[Service], Iterator[Mapping[str, Any]]]
Entries = Mapping[str, tuple[Resource, ...]]
_TYPES = "type.googleapis.com/envoy.extensions"
_TLS = f"{_TYPES}.transport_sockets.tls.v3.DownstreamTlsContext"
_QUIC = "envoy.transport_sockets.quic"
_QUIC_TRANSPORT = f"{_TYPES}.transport_sockets.quic.v3.QuicDownstreamTransport"
_LUA = f"{_TYPES}.filters.http.lua.v3.Lua"
_PROVES = "acme-tls/1"
"""The protocol of a handshake in which an authority proves a name; no one else asks for it."""
_FROM_HERE = {"resource_api_version": "V3", "ads": {}}

# The name in the handshake says which certificate is shown, and which callers must show one: who then asked for another
# deployment's host would have passed that one's door.
_MISDIRECTED = """
function envoy_on_request(handle)
  local host = (handle:headers():get(":authority") or ""):lower():gsub(":%d+$", "")
  if host ~= handle:streamInfo():requestedServerName():lower() then
    handle:respond({[":status"] = "421"}, "Rollway: this connection was opened for another host name.\\n")
  end
end
"""


def listeners_of(services: Iterable[Service], door: TlsDoor, before: Named, changes: Collection[str] = ()) -> Named:
    """The listeners for TLS and for HTTP/3, with a chain for each certificate; each only while it has one to show.

    `before`: older ones, of which everything is kept but the chains of deployments that have `changes`.
    """
    all_services = list(services)
    listeners = {
        LISTENER: listing(
            _by_tcp(door),
            "filter_chains",
            _entries(all_services, partial(_chains, door), before.get(LISTENER), changes),
        ),
        HTTP3: listing(
            _by_udp(door),
            "filter_chains",
            _entries(all_services, partial(_http3_chains, door), before.get(HTTP3), changes),
        ),
    }
    return {name: listener for name, listener in listeners.items() if listener.entries}


def _entries(services: Iterable[Service], chains: Chains, before: Resource | None, changes: Collection[str]) -> Entries:
    """The chains of each deployment, made again where it has changed; none of one without."""
    by_name = {}
    for service in services:
        if before is not None and service.name not in changes:
            entries = before.entries.get(service.name, ())
        else:
            entries = tuple(map(resource, chains(service)))
        if entries:
            by_name[service.name] = entries
    return by_name


def _by_tcp(door: TlsDoor) -> dict[str, Any]:
    inspector = {"@type": f"{_TYPES}.filters.listener.tls_inspector.v3.TlsInspector"}
    return {
        "name": LISTENER,
        "address": for_callers(door.host, door.port),
        "per_connection_buffer_limit_bytes": 1_048_576,
        "listener_filters": [
            *(_parts_as_in_files(reads) for reads in listener_filters(door.in_front)),
            {"name": "envoy.filters.listener.tls_inspector", "typed_config": inspector},
        ],
        # who opens a connection and says nothing is let go
        "listener_filters_timeout": "10s",
    }


def _by_udp(door: TlsDoor) -> dict[str, Any]:
    at = for_callers(door.host, door.port, protocol="UDP")
    return {"name": HTTP3, "address": at, "udp_listener_config": {"quic_options": {}}}


def secrets_of(service: Service) -> dict[str, Resource]:
    """The certificates of a deployment, by their names."""
    return {
        certificate.name: _secret(certificate) for certificate in (*dict(_certificates(service)), *_proofs(service))
    }


def _secret(certificate: ShownCertificate) -> Resource:
    chain, key = ({"inline_string": text} for text in (certificate.chain, certificate.key))
    return resource({"name": certificate.name, "tls_certificate": {"certificate_chain": chain, "private_key": key}})


def _proofs(service: Service) -> tuple[ShownCertificate, ...]:
    return service.secured.proofs if service.secured else ()


def is_secured(service: Service) -> bool:
    """Whether each of its host names has a certificate."""
    return bool(service.hosts) and secured_hosts(service) == service.hosts


def secured_hosts(service: Service) -> tuple[str, ...]:
    names = [name for certificate, _ in _certificates(service) for name in certificate.names]
    return tuple(host for host in service.hosts if is_for(names, host))


def _certificates(service: Service) -> Iterator[tuple[ShownCertificate, tuple[str, ...]]]:
    """Yield each certificate with the host names that it is shown for; a name has one certificate, the first."""
    names: set[str] = set()
    for certificate in service.secured.certificates if service.secured else ():
        hosts = [host for host in (*service.hosts, *service.preview_hosts) if is_for(certificate.names, host)]
        if free := tuple(host for host in hosts if host not in names):
            names.update(free)
            yield certificate, free


def _chains(door: TlsDoor, service: Service) -> Iterator[Mapping[str, Any]]:
    """The chains of handshakes that prove names, and of those for requests."""
    for proof in _proofs(service):
        secrets = [{"name": proof.name, "sds_config": _FROM_HERE}]
        both = {"alpn_protocols": [_PROVES], "tls_certificate_sds_secret_configs": secrets}
        yield {
            "name": proof.name,
            "filter_chain_match": {**_by_name(proof.names), "application_protocols": [_PROVES]},
            "transport_socket_connect_timeout": "10s",
            "transport_socket": {
                "name": "envoy.transport_sockets.tls",
                "typed_config": {"@type": _TLS, "common_tls_context": both},
            },
            "filters": [_requests(door.in_front.trusted_hops, asks_callers=False)],
        }
    for certificate, hosts in _certificates(service):
        yield {
            "name": certificate.name,
            "filter_chain_match": _by_name(hosts),
            "transport_socket_connect_timeout": "10s",
            "transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": _tls(certificate, service)},
            "filters": [_requests(door.in_front.trusted_hops, asks_callers=service.asks_callers)],
        }


def _http3_chains(door: TlsDoor, service: Service) -> Iterator[Mapping[str, Any]]:
    """Show the same certificates over HTTP/3."""
    if service.rules.tls is None or not service.rules.tls.http3:
        return
    for certificate, hosts in _certificates(service):
        secrets = [{"name": certificate.name, "sds_config": _FROM_HERE}]
        transport = {"downstream_tls_context": {"common_tls_context": {"tls_certificate_sds_secret_configs": secrets}}}
        yield {
            "name": certificate.name,
            "filter_chain_match": {"server_names": list(hosts), "transport_protocol": "quic"},
            "transport_socket": {"name": _QUIC, "typed_config": as_in_a_file(_QUIC_TRANSPORT, transport)},
            "filters": [_requests(door.in_front.trusted_hops, asks_callers=False, is_http3=True)],
        }


def _by_name(hosts: tuple[str, ...]) -> dict[str, Any]:
    return {"server_names": list(hosts), "transport_protocol": "tls"}


def _tls(certificate: ShownCertificate, service: Service) -> dict[str, Any]:
    secrets = [{"name": certificate.name, "sds_config": _FROM_HERE}]
    both: dict[str, Any] = {
        "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
        "alpn_protocols": ["h2", "http/1.1"],
        "tls_certificate_sds_secret_configs": secrets,
    }
    if not service.asks_callers:
        return {"@type": _TLS, "common_tls_context": both}
    validation = believed(service.secured.callers_ca if service.secured else "")
    return {
        "@type": _TLS,
        "common_tls_context": {**both, "validation_context": validation},
        "require_client_certificate": True,
    }


def _parts_as_in_files(config: Any) -> Any:  # noqa: ANN401  (JSON)
    match config:
        case {"@type": str(kind)}:
            return as_in_a_file(kind, {name: value for name, value in config.items() if name != "@type"})
        case dict():
            return {name: _parts_as_in_files(value) for name, value in config.items()}
        case list():
            return [_parts_as_in_files(value) for value in config]
    return config


@cache
def _requests(trusted_hops: int, *, asks_callers: bool, is_http3: bool = False) -> Mapping[str, Any]:
    """The bootstrap's filter of requests, which here refuses those for another name than the handshake's.

    Where callers show a certificate, replicas are told whose it was, and nobody else can say so.
    """
    http_filter = deepcopy(dict(filter_of_requests(trusted_hops)))
    config = http_filter["typed_config"]
    kind = config.pop("@type")
    lua = {"@type": _LUA, "default_source_code": {"inline_string": _MISDIRECTED}}
    config["http_filters"].insert(0, {"name": "rollway.misdirected", "typed_config": lua})
    if is_http3:  # Envoy looks for this very kind here, and takes none that is as in a file
        return {**http_filter, "typed_config": {"@type": kind, **_parts_as_in_files(config), "codec_type": "HTTP3"}}
    if asks_callers:
        config["forward_client_cert_details"] = "SANITIZE_SET"
        config["set_current_client_cert_details"] = {"subject": True, "uri": True, "dns": True}
    return {**http_filter, "typed_config": as_in_a_file(kind, config)}
