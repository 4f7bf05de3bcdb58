"""A revision as an immutable spec: its runtime, its command, and the name that its content gives it."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)

from domain.devices.needs import GPU, OWN_DEVICES, VISIBLE, WrittenNeeds, marks_of
from domain.revisions.health_check import HealthCheck
from domain.revisions.host_labels import HOST, RequiredLabels, Word
from domain.revisions.runtime_spec import DockerSpec, ExternalSpec
from domain.revisions.secret_refs import MASK, MOST_SECRETS, EnvValue, names_masked, references_of
from domain.revisions.shell_syntax import (
    ProgramWords,
    fault_of_command,
    fault_of_text,
    fault_of_variable,
    split_command,
)
from domain.revisions.warm_start_spec import Park, Prepare, WarmUp
from domain.text.errors import InvalidInputError, RollwayError
from domain.text.storable import storable

MOST_SECONDS = 86_400
"""That a replica may take to leave."""


class RevisionExistsError(RollwayError):
    """A revision of that name exists with another content; revisions never change."""

    @classmethod
    def of(cls, deployment: str, revision: str) -> Self:
        """The refusal to give the revision another content."""
        message = (
            f"revision {revision} of {deployment} exists with another content; "
            "revisions never change: give it another name, or leave 'name' out, and the content names it"
        )
        return cls(message, deployment=deployment, revision=revision)


def _variable_name(name: str) -> str:
    if not name or "=" in name or storable(name) != name:
        raise ValueError("must be the name of a variable: not empty, and without '=' and control characters")
    return name


VariableName = Annotated[str, AfterValidator(_variable_name)]


_NAMED = frozenset(
    ("runtime", "command", "env", "working_directory", "health_check", "drain_seconds", "stop_grace_seconds")
)
"""The fields of the first releases: the name of a revision is made from them whatever their values are."""


class RevisionSpec(BaseModel):
    """The content of a revision. Without a health check a replica counts as healthy once it has run for 3 s."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    runtime: Literal["process", "docker", "external"] = "process"
    """The runtime of the replicas: processes of the worker's host, containers, or another system."""
    command: Annotated[
        ProgramWords | None,
        BeforeValidator(split_command),
        Field(validate_default=True, description="text, split as a shell does it, or a list of text"),
    ] = None
    """The program with its arguments. process: required; docker: the image's own by default; external: none. Rollway
    fills in {port} and {host}, where the replica listens, {route}, the id of its route, and {gpu}, its devices.
    """
    env: dict[VariableName, EnvValue] = Field(default_factory=dict, repr=False)
    """Variables of the replica's environment; Rollway adds the deployment's name, PORT and others. Each is a text, in
    which Rollway fills in {port}, {host} and {route}, or a secret that the replica's host reads: {secret:
    'file:/run/secrets/db'}.
    """
    working_directory: str | None = None
    """The folder in which it runs. In a file, a relative path starts at the file's folder, which is also the default of
    a process. null, and the default of a command by message: the worker's folder.
    """
    user: str | None = Field(
        default=None, pattern=r"^[a-z_][a-z0-9_.-]{0,31}$", json_schema_extra={"x-when": "runtime=process"}
    )
    """The user of a process: one of ROLLWAY_REPLICA_USERS; left out, the host's ROLLWAY_REPLICA_USER."""
    docker: DockerSpec | None = Field(
        default=None, validate_default=True, json_schema_extra={"x-when": "runtime=docker"}
    )
    """Settings of the runtime docker."""
    external: ExternalSpec | None = Field(
        default=None, validate_default=True, json_schema_extra={"x-when": "runtime=external"}
    )
    """Settings of the runtime external."""
    hosts: RequiredLabels = Field(default_factory=dict)
    """The labels that a host must have to run a replica, such as {zone: a}; the label `host` is its name. While no such
    host is up, a replica waits.
    """
    spread: Word = HOST
    """The label over whose values replicas are spread: `host`, each host alone, or a label such as `zone`.
    """
    health_check: HealthCheck | None = None
    """Left out: a replica counts as healthy once it has run for 3 s."""
    prepare: Prepare | None = None
    """The work of each host before its first replica, and before a rollout touches any replica. Left out: none."""
    warm_up: WarmUp | None = None
    """Requests that a replica must answer fast, after its health check and before its first caller. Left out: none."""
    park: Park | None = None
    """The requests that put a parked replica to sleep and wake it. Left out: it continues to run."""
    drain: Literal["until_idle", "fixed"] = "until_idle"
    """A leaving replica's time for its answers: until the last has ended, if every live proxy reports them, or
    a fixed time.
    """
    drain_seconds: float = Field(default=2.0, ge=0, le=MOST_SECONDS)
    """For requests in flight if proxies do not report: from the moment at which no proxy sends more requests to
    SIGTERM.
    """
    drain_max_seconds: float = Field(default=3600.0, ge=0, le=MOST_SECONDS)
    """The longest drain with `drain: until_idle`: answers that take longer are cut."""
    stop_grace_seconds: float = Field(default=10.0, ge=0, le=MOST_SECONDS)
    """The time from SIGTERM to SIGKILL."""
    needs: WrittenNeeds = Field(default_factory=dict)
    """The devices and amounts that a replica takes from its host, such as {gpu: 1, memory_gb: 40}; 0.5 is half of a
    device, and names of amounts end with _gb. ROLLWAY_HOST_RESOURCES names what a host has.
    """
    release_seconds: float = Field(default=3.0, ge=0, le=3600)
    """The time after a replica has gone for which nobody gets its devices, since drivers free memory late."""

    @field_validator("command", "working_directory", "user", "docker", "external")
    @classmethod
    def _fits_its_runtime(cls, value: object, info: ValidationInfo) -> object:
        if fault := _misfit(info.data.get("runtime"), info.field_name, value):
            raise ValueError(fault)
        return value

    @field_validator("hosts", "spread", "needs")
    @classmethod
    def _are_of_our_hosts(cls, value: object, info: ValidationInfo) -> object:
        if info.data.get("runtime") == "external" and value not in ({}, HOST):
            raise ValueError("must be left out with runtime 'external': that system chooses where its replicas run")
        return value

    @field_validator("prepare")
    @classmethod
    def _hosts_are_rollways(cls, prepare: Prepare | None, info: ValidationInfo) -> Prepare | None:
        match info.data.get("runtime"), prepare:
            case "external", Prepare():
                raise ValueError("must be left out with runtime 'external': the other system prepares its own hosts")
            case "process", Prepare(image=True):
                raise ValueError("image belongs to runtime 'docker', and this one is 'process': leave it out")
        return prepare

    @field_validator("needs")
    @classmethod
    def _gpus_are_chosen_once(cls, needs: dict[str, float], info: ValidationInfo) -> dict[str, float]:
        """Refuse other settings of GPUs in a revision with needs: Rollway chooses the devices of its replicas."""
        gpus = [kind for kind in needs if kind.partition(".")[0] == GPU]
        docker = info.data.get("docker")
        if gpus and docker is not None and docker.resources.gpus:
            raise ValueError(f"{gpus[0]}: leave docker.resources.gpus out: a replica gets the devices that it needs")
        if gpus and VISIBLE in (info.data.get("env") or {}):
            raise ValueError(f"{gpus[0]}: leave {VISIBLE} out of env: Rollway sets it to the devices of each replica")
        return needs

    @field_validator("env")
    @classmethod
    def _secrets_have_a_host(cls, env: dict[str, EnvValue], info: ValidationInfo) -> dict[str, EnvValue]:
        if info.data.get("runtime") == "external" and (names := references_of(env)):
            listed_names = ", ".join(names)
            raise ValueError(
                f"{listed_names}: runtime 'external' takes no references: that system has secrets of its own"
            )
        if len(references_of(env)) > MOST_SECRETS:
            raise ValueError(f"at most {MOST_SECRETS} of its variables may be secrets: each host is asked for each")
        return env

    def canonical_json(self) -> str:
        """Keys sorted, no white space: equal specs give equal text.

        Of the fields that came later those that the revision does not use are left out: a release that has one more
        changes no name.
        """
        fields = type(self).model_fields.items()
        defaults = {name: field.get_default(call_default_factory=True) for name, field in fields if name not in _NAMED}
        unused = {name for name, default in defaults.items() if getattr(self, name) == default}
        content = self.model_dump(mode="json", exclude=unused)
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class WrittenSpec(RevisionSpec):
    """A content that a person writes down: shell syntax, which nothing would read, is refused."""

    @field_validator("command", mode="wrap")
    @classmethod
    def _needs_no_shell(cls, value: object, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> object:
        """Refuse shell syntax: a program that gets it as an argument ends at once, and only its log says why."""
        command = validate(value)
        if not command or info.data.get("runtime") != "process":
            return command
        if fault := fault_of_command(command) or (fault_of_text(value) if isinstance(value, str) else ""):
            raise ValueError(fault)
        return command

    @field_validator("prepare")
    @classmethod
    def _is_prepared_without_a_shell(cls, prepare: Prepare | None, info: ValidationInfo) -> Prepare | None:
        command = prepare.command if prepare and info.data.get("runtime") == "process" else None
        if command and (fault := fault_of_command(command)):
            raise ValueError(f"command: {fault}")
        return prepare

    @field_validator("env")
    @classmethod
    def _needs_no_shell_either(cls, env: dict[str, EnvValue], info: ValidationInfo) -> dict[str, EnvValue]:
        for name, value in env.items() if info.data.get("runtime") != "external" else ():
            if isinstance(value, str) and (fault := fault_of_variable(name, value, env)):
                raise ValueError(f"{name}: {fault}")
        return env

    @property
    def spec(self) -> RevisionSpec:
        return RevisionSpec.model_validate(self.model_dump(include=set(RevisionSpec.model_fields)))


def _misfit(runtime: str | None, field: str | None, value: object) -> str | None:
    """Why this value of the field does not go with the runtime, or None. No runtime: its own fault is enough."""
    match runtime, field, value:
        case "process", "command", None:
            return "is required with runtime 'process': what to run, such as 'python3 serve.py'"
        case "docker", "docker", None:
            return "is required with runtime 'docker', such as {image: 'web:1', port: 8080}"
        case "external", "external", None:
            return "is required with runtime 'external', such as {webhook: 'https://example.com/replicas'}"
        case None, _, _:
            return None
        case _, _, None:
            return None
        case "docker" | "external", "user", _:
            return f"belongs to runtime 'process', and this one is {runtime!r}: leave it out"
        case "external", "command" | "working_directory", _:
            return "must be left out with runtime 'external': the other system knows what to run"
        case "docker", "working_directory", str() if not value.startswith("/"):
            return "must be an absolute folder of the container with runtime 'docker', such as '/app'"
        case _, "docker" | "external", _ if runtime != field:
            return f"belongs to runtime {field!r}, and this one is {runtime!r}: leave it out, or set runtime: {field}"
    return None


def revision_name(deployment: str, spec: RevisionSpec) -> str:
    """`<deployment>-<first 8 hex digits of the SHA-256 of the canonical JSON>`."""
    return f"{deployment}-{hashlib.sha256(spec.canonical_json().encode()).hexdigest()[:8]}"


_FILLED_IN = {"{port}": "PORT", "{host}": "HOST", "{route}": "ROLLWAY_ROUTE"}


def filled_in(texts: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The words of a command, or values of variables, of one replica that is `values` its variables.

    ["--bind={port}"] -> ["--bind=8123"]

    {gpu} and {gpu.0} become the ids of its devices. Other braces stay as they are.
    """
    words = list(texts)
    marks = {mark: values[name] for mark, name in _FILLED_IN.items()} | marks_of(values.get(OWN_DEVICES, ""))
    for mark, text in marks.items():
        words = [word.replace(mark, text) for word in words]
    return words


Spec = TypeVar("Spec", bound=RevisionSpec)


@dataclass(frozen=True, slots=True)
class StoredSpec:
    """`unreadable`: why this release cannot read it; the spec then only has the fields that end a replica."""

    spec: RevisionSpec
    unreadable: str | None = None


def stored_spec(text: str) -> StoredSpec:
    """The spec in a revision's JSON.

    fields that this release does not know   -> left out
    values that it does not take             -> unreadable; to end a replica its runtime, times and address are kept
    """
    try:
        return StoredSpec(RevisionSpec.model_validate_json(text, extra="ignore"))
    except ValidationError as error:
        fault = InvalidInputError.of(error, "revision")
    raw = json.loads(text)
    spec = _what_ends_it(raw if isinstance(raw, dict) else {})
    return StoredSpec(spec, f"this release of Rollway cannot read its revision: {fault}")


def is_same(raw: Mapping[str, Any], spec: RevisionSpec) -> bool:
    """Whether a stored spec equals this one.

    Fields that the release which wrote it did not know have their defaults.
    """
    try:
        return RevisionSpec.model_validate(raw) == spec
    except ValidationError:
        return False


def with_values_of(raw: Mapping[str, Any], spec: Spec) -> Spec:
    """The spec with the stored values in place of ***; without a stored value *** stays."""
    if not names_masked(spec.env):
        return spec
    stored_env = stored_spec(json.dumps(raw)).spec.env
    env = {name: stored_env.get(name, value) if value == MASK else value for name, value in spec.env.items()}
    return spec.model_copy(update={"env": env})


def _what_ends_it(raw: Mapping[str, Any]) -> RevisionSpec:
    """A revision that is not validated: this release may not have its runtime."""
    spec: dict[str, Any] = {"runtime": str(raw.get("runtime", "process"))}
    for name in ("drain_seconds", "drain_max_seconds", "stop_grace_seconds"):
        if isinstance(raw.get(name), int | float):
            spec[name] = min(max(0.0, raw[name]), MOST_SECONDS)
    if raw.get("drain") == "fixed":
        spec["drain"] = "fixed"
    with suppress(ValidationError):
        spec["external"] = ExternalSpec.model_validate(raw.get("external"), extra="ignore")
    return RevisionSpec.model_construct(**spec)


def changed_spec(name: str, raw: StoredSpec, image: str | None, command: Sequence[str]) -> RevisionSpec:
    """The current spec with this image or command. Raises InvalidInputError.

    what this release cannot read              -> error
    an image for what does not run in a container -> error
    otherwise                                   -> everything else as it was
    """
    if raw.unreadable:
        raise InvalidInputError(f"{name}: {raw.unreadable}", field="revision")
    change: dict[str, Any] = {"command": list(command)} if command else {}
    if image is not None:
        if raw.spec.docker is None:
            message = f"image: {name} runs with runtime {raw.spec.runtime!r}, which has no image"
            raise InvalidInputError(f"{message}; a command changes what it runs", field="image")
        change["docker"] = {**raw.spec.docker.model_dump(mode="json"), "image": image}
    try:
        return RevisionSpec.model_validate({**raw.spec.model_dump(mode="json"), **change})
    except ValidationError as error:
        raise InvalidInputError.of(error, model=RevisionSpec) from None


_RESTART = re.compile(r"\.r([1-9][0-9]*)$")
_MOST = 63
"""Letters in the name of a revision."""


def restarted_name(name: str, names: Collection[str]) -> str:
    """The next name that is not taken yet; one that is too long is cut."""
    match = _RESTART.search(name)
    number = int(match[1]) + 1 if match else 2
    while (next_name := _numbered(name, number)) in names:
        number += 1
    return next_name


def is_restart(name: str, of: str) -> bool:
    """Whether `name` is the name of a restart of the revision `of`."""
    match = _RESTART.search(name)
    return match is not None and name == _numbered(of, int(match[1])) != of


def _numbered(name: str, number: int) -> str:
    suffix = f".r{number}"
    return _RESTART.sub("", name)[: _MOST - len(suffix)].rstrip("-.") + suffix
