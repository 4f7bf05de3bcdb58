"""The command that applies a file, and the documents of such a file."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from domain.commands.base import POLICY, SPEC, Replicas, Starting
from domain.commands.results import Applied
from domain.installation.tokens import Role
from domain.model.policy import DeploymentPolicy
from domain.revisions.revision import WrittenSpec, revision_name
from domain.strategies.builtin import chosen_policy, parse_policy
from domain.text.errors import InvalidInputError
from domain.text.storable import DeploymentName, Name
from domain.traffic.entrances import TrafficSettings
from domain.traffic.snapshot import Entrance

MOST_DOCUMENTS = 500
_EXAMPLE = {"deployment": "web", "replicas": 3, "revision": SPEC, "policy": POLICY}


class RevisionSection(WrittenSpec):
    """The revision to run."""

    name: Name | None = None
    """Left out: `<deployment>-<8 hex digits>` of its content."""


class Document(BaseModel):
    """One deployment as you want it. A key that is left out changes nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    deployment: DeploymentName
    """The name of the deployment."""
    replicas: Replicas | None = None
    """The number of replicas; a new deployment has 1."""
    revision: RevisionSection | None = None
    """The spec of the replicas."""
    policy: dict[str, Any] | None = Field(default=None, json_schema_extra={"x-fields": "policy"})
    """The rollouts: `strategy`, `spec` and `limits`; null: no rollouts, replicas are replaced one by one."""
    traffic: TrafficSettings | None = None
    """Hosts, paths and rules; null: those of a new deployment, hosts NAME and NAME.localhost and path /NAME/."""
    activate: bool = True
    """false: the revision is only registered."""

    @field_validator("policy")
    @classmethod
    def _is_one(cls, policy: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            if policy is not None:
                chosen_policy(policy)
        except InvalidInputError as error:
            raise ValueError(error.message) from error  # its faults have paths of their own
        return policy

    @model_serializer(mode="wrap")
    def _as_given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Null and left out are two things here."""
        return {name: value for name, value in dump(self).items() if name in self.model_fields_set}

    @property
    def revision_name(self) -> str | None:
        if self.revision is None:
            return None
        return self.revision.name or revision_name(self.deployment, self.revision.spec)

    @property
    def mentions_policy(self) -> bool:
        """Whether the document says anything about the policy, be it null."""
        return "policy" in self.model_fields_set

    @property
    def wanted_traffic(self) -> TrafficSettings | None:
        """The place where it shall be reached; None when the document does not say."""
        return (self.traffic or TrafficSettings()) if "traffic" in self.model_fields_set else None

    @property
    def asked_entrances(self) -> tuple[Entrance, ...]:
        if self.traffic is None or self.traffic.is_default:
            return ()
        return self.traffic.entrances_of(self.deployment)

    @property
    def parsed_policy(self) -> DeploymentPolicy | None:
        return None if self.policy is None else parse_policy(self.policy)


class ToApply(BaseModel):
    """The documents to apply, and how far."""

    documents: tuple[Document, ...] = Field(
        min_length=1, max_length=MOST_DOCUMENTS, json_schema_extra={"x-kind": "documents"}
    )
    """The documents, each of one deployment."""
    activate: bool = True
    """false: revisions are only registered."""
    supersede: bool = False
    """Leave rollouts to other revisions that are under way."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if fault := disagreement(self.documents):
            raise ValueError(fault)
        return self


class Apply(ToApply, Starting):
    """Make deployments match these documents, all of them or none."""

    task = "rollway.apply"
    answer = Applied
    role = Role.OPERATOR
    is_planned = True
    example = {"documents": [_EXAMPLE], "reason": "ticket 7"}


def disagreement(documents: Sequence[Document]) -> str | None:
    """A claim that two of the documents make; None if there is none."""
    if repeated := _first_repeated(document.deployment for document in documents):
        return f"deployment: {repeated} is in two documents; give it one"
    if repeated := _first_repeated(entrance.value for document in documents for entrance in document.asked_entrances):
        return f"traffic: {repeated} is in two documents; only one deployment can be reached by it"
    return None


def _first_repeated(values: Iterable[str]) -> str | None:
    return next((value for value, count in Counter(values).items() if count > 1), None)
