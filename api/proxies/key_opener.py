"""Opens the keys of certificates, which stand in Postgres sealed, for the proxies that show them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from domain.text.errors import RollwayError
from domain.traffic.snapshot import DeploymentInTraffic, TrafficSnapshot
from domain.traffic.tls_material import Secured, ShownCertificate
from traffic.routing_table import TlsDoor

if TYPE_CHECKING:
    from traffic.certificates.x509 import KeySeal


@dataclass
class Opener:
    """Knows the key that they are sealed with, and where proxies show them. What is as it was is opened once."""

    key: str | None = field(repr=False)
    door: TlsDoor | None
    _cache: dict[str, tuple[DeploymentInTraffic, DeploymentInTraffic, tuple[str, ...]]] = field(default_factory=dict)

    def in_place(self, snapshot: TrafficSnapshot) -> TrafficSnapshot:
        """The snapshot with keys opened; a certificate that cannot be shown is left out, and named as a fault."""
        if not any(deployment.secured for deployment in snapshot.deployments):
            return snapshot
        entries = [self._in_place(deployment) for deployment in snapshot.deployments]
        self._cache = {entry[0].name: entry for entry in entries if entry[0].secured}
        faults = tuple(fault for *_, faults in entries for fault in faults)
        return replace(
            snapshot, deployments=tuple(with_keys for _, with_keys, _ in entries), faults=(*snapshot.faults, *faults)
        )

    def _in_place(
        self, deployment: DeploymentInTraffic
    ) -> tuple[DeploymentInTraffic, DeploymentInTraffic, tuple[str, ...]]:
        entry = self._cache.get(deployment.name)
        if entry is not None and entry[0] is deployment:
            return entry
        if deployment.secured is None:
            return deployment, deployment, ()
        material, faults = self._open(deployment.name, deployment.secured)
        return deployment, replace(deployment, secured=material), faults

    def _open(self, deployment: str, material: Secured) -> tuple[Secured, tuple[str, ...]]:
        if self.door is None:
            fault = f"{deployment}: ROLLWAY_TLS_PORT is not set, so no proxy listens for HTTPS"
            return replace(material, certificates=(), proofs=()), (fault,)
        faults: list[str] = []
        unsealed, proofs = (
            tuple(self._each(deployment, certificates, faults))
            for certificates in (material.certificates, material.proofs)
        )
        return replace(material, certificates=unsealed, proofs=proofs), tuple(faults)

    def _each(
        self, deployment: str, certificates: tuple[ShownCertificate, ...], faults: list[str]
    ) -> Iterator[ShownCertificate]:
        for certificate in certificates:
            try:
                yield replace(certificate, key=self._key(certificate))
            except RollwayError as error:
                faults.append(f"{deployment}: the key of certificate {certificate.name} cannot be opened: {error}")

    def _key(self, certificate: ShownCertificate) -> str:
        if self._seal is None:
            raise RollwayError("ROLLWAY_CERTIFICATE_KEY is not set for the server for proxies")
        return self._seal.unseal(certificate.key)

    @cached_property
    def _seal(self) -> "KeySeal | None":
        from traffic.certificates.x509 import KeySeal  # noqa: PLC0415 -- a server without certificates needs no cryptography

        return None if self.key is None else KeySeal(self.key)
