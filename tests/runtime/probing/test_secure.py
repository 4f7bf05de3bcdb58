"""Probes of replicas that speak TLS: believed by the right authority for the right name, and otherwise told why not."""

from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from domain.revisions.health_check import HealthCheck
from domain.traffic.tls import ReplicaTls
from runtime.probing.http1 import ProbeAnswer
from runtime.probing.probes import Prober, ProbeTarget
from tests.support.certificates.authorities import Authority
from tests.support.workers.probed import OK, says, secured


def answer(address: str, tls: ReplicaTls, protocol: str = "http1") -> ProbeAnswer:
    check = HealthCheck.model_validate({"protocol": protocol, "timeout_seconds": 20})
    target = ProbeTarget(uuid4(), address, check, tls)
    with closing(Prober()) as prober:
        prober.submit([target])
        return prober.answers(30)[target.route_id]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.make()


def test_a_replica_is_believed_for_its_name_by_its_authority_and_by_no_other(
    authority: Authority, tmp_path: Path
) -> None:
    with secured(authority.certify("web").written(tmp_path)) as address:
        assert answer(address, ReplicaTls("web", authority.pem)) == ProbeAnswer(
            ok=True, detail="GET /health answered 200"
        )
        why = "shows a certificate that is not believed for {}, as traffic.upstream_tls wants it: "
        for tls, reason in (
            (ReplicaTls("other", authority.pem), "Hostname mismatch, certificate is not valid for 'other'"),
            (
                ReplicaTls("web", Authority.make().pem),
                "certificate signature failure|unable to get local issuer|self-signed",
            ),
            (ReplicaTls("web", None), "self-signed|self signed|unable to get local issuer"),
        ):
            found = answer(address, tls)
            assert not found.ok
            assert found.detail.startswith(f"{address} {why.format(tls.name)}")
            assert any(part in found.detail for part in reason.split("|")), found.detail
        assert answer(address, ReplicaTls("web", "")).detail == (
            f"{address} is not asked: nobody has read the file of upstream_tls.ca yet"
        )


def test_a_replica_that_speaks_no_tls_is_told(authority: Authority) -> None:
    with says(OK) as address:
        said = answer(address, ReplicaTls("web", authority.pem)).detail
        assert said == f"{address} answers no TLS, which traffic.upstream_tls says that it speaks"
