"""The page about the file of `rollway apply`: every key, and each strategy."""

from pathlib import Path

from pydantic import BaseModel

from domain.commands.apply.document import Document, RevisionSection
from domain.model.policy import RolloutLimits
from domain.revisions.health_check import HealthCheck
from domain.revisions.runtime_spec import DockerResources, DockerSpec, ExternalSpec
from domain.revisions.warm_start_spec import Park, ParkRequest, Prepare, WarmUp, WarmUpRequest
from domain.strategies.builtin import STRATEGIES
from domain.traffic.caller_match import Sticky
from domain.traffic.entrances import TrafficSettings
from domain.traffic.tls import TlsSettings, UpstreamTls
from tools.reference.markdown import page, prose, table
from tools.reference.models import inner, rows_of

SECTIONS: dict[str, type] = {
    "a document": Document,
    "revision": RevisionSection,
    "revision.health_check": HealthCheck,
    "revision.prepare": Prepare,
    "revision.warm_up": WarmUp,
    "revision.warm_up.requests": WarmUpRequest,
    "revision.park": Park,
    "revision.park.sleep and revision.park.wake": ParkRequest,
    "revision.docker": DockerSpec,
    "revision.docker.resources": DockerResources,
    "revision.external": ExternalSpec,
    "traffic": TrafficSettings,
    "traffic.tls": TlsSettings,
    "traffic.upstream_tls": UpstreamTls,
    "traffic.sticky": Sticky,
    "policy.limits": RolloutLimits,
}

HEADS = ("key", "default", "values", "meaning")
_EXAMPLES = Path(__file__).parents[2] / "examples"


def file_page() -> str:
    """What docs/reference/file.md holds."""
    return page(
        "The file of `rollway apply`",
        "A file is YAML, with one or several documents, separated by `---`. A section that is left out\n"
        "changes nothing, and neither do `replicas` and `revision` that are null. A section in the file\n"
        "replaces the whole section before: a key that is left out, or is null without a meaning below, gets\n"
        "its default. So `traffic: null` brings back all defaults of the section; `policy: null` removes the\n"
        "policy. Seconds may be fractions.\n\n"
        "Begin with [web.yaml](../../examples/web.yaml). [docker.yaml](../../examples/docker.yaml) and\n"
        "[external.yaml](../../examples/external.yaml) have the other runtimes,\n"
        "[grpc.yaml](../../examples/grpc.yaml) is a gRPC service,\n"
        "[vllm.yaml](../../examples/vllm.yaml) a model on GPUs, and\n"
        "[sticky.yaml](../../examples/sticky.yaml) keeps callers with a replica.\n\n"
        "Next: [operations](../operations.md) explains how to run Rollway.",
        *(_section(f"`{name}`" if "." in name or " " not in name else name, model) for name, model in SECTIONS.items()),
        "## `policy`\n\n"
        + table(
            HEADS[:1] + HEADS[2:],
            [
                ["`strategy`", " or ".join(f"`{name}`" for name in STRATEGIES), "The way replicas are replaced."],
                ["`spec`", "fields of its own, below", "Settings of the strategy."],
                ["`limits`", "fields of its own, above", "The time and the failures that a rollout may take."],
            ],
        ),
        *(_strategy(name) for name in STRATEGIES),
    )


def _section(name: str, model: type) -> str:
    said = f"## {name[0].upper()}{name[1:]}\n\n{prose(model.__doc__)}\n"
    return said + table(HEADS, (row.cells for row in rows_of(model)))


def _strategy(name: str) -> str:
    spec = STRATEGIES[name].spec_model
    said = f"### `policy.spec` of `{name}`\n\n{prose(spec.__doc__)}\n"
    example = (_EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8").strip()
    rows = table(HEADS, (row.cells for row in rows_of(spec)))
    rows += "".join(f"\n{_within(*place)}" for place in inner(spec, "spec"))
    return f"{said}{rows}\n[{name}.yaml](../../examples/{name}.yaml):\n\n```yaml\n{example}\n```\n"


def _within(place: str, model: type[BaseModel]) -> str:
    return f"#### `{place}`\n\n{prose(model.__doc__)}\n" + table(HEADS, (row.cells for row in rows_of(model)))
