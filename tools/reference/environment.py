"""The page about the variables of the environment."""

from api.people.people_app import PeopleSettings
from api.people.reads.deployment_reads import CallersSettings
from api.proxy_settings import ApiSettings
from db.connection.database_settings import DatabaseSettings
from domain.installation.settings import LogLimits, Retention, Settings
from tasks.task_settings import TaskSettings
from tools.reference.markdown import page, table
from tools.reference.models import rows_of
from traffic.edge_settings import CertificateSettings

READERS: dict[str, tuple[type[Settings], ...]] = {
    "Workers, beat, and commands that write": (
        DatabaseSettings,
        TaskSettings,
        Retention,
        LogLimits,
        CertificateSettings,
    ),
    "The server for proxies, besides": (ApiSettings,),
    "The server for people, besides": (PeopleSettings, CallersSettings),
}

OF_COMMANDS = (
    (
        "`ROLLWAY_ENVOY`",
        "`on`",
        "on, 2 or off",
        "Whether `rollway up` starts an Envoy, or two that share a port; off: you run a proxy.",
    ),
    (
        "`ROLLWAY_ENVOY_HOST`",
        "`127.0.0.1`",
        "an address of this machine, such as 0.0.0.0, or :: for IPv6 and IPv4",
        "Where the Envoy of `rollway up` listens for callers.",
    ),
    (
        "`ROLLWAY_ENVOY_HANDOVER_SECONDS`",
        "60",
        "from 2 to 86400",
        "For how long an Envoy that is restarted continues with what it has under way.",
    ),
    (
        "`ROLLWAY_SOCKET`; `LISTEN_FDS`, `LISTEN_PID`",
        "none",
        "set by `rollway up`; by systemd",
        "The listening socket that is kept for a process, so that nobody else gets its port.",
    ),
    ("`ROLLWAY_TRACEBACKS`", "none", "anything", "A fault of Rollway's own shows where it happened."),
    (
        "`DOCKER_HOST`, `DOCKER_TLS_VERIFY`, `DOCKER_CERT_PATH`",
        "the local engine",
        "as Docker reads them",
        "The engine of a host's containers.",
    ),
    (
        "`OTEL_EXPORTER_OTLP_ENDPOINT` and others of OpenTelemetry",
        "none",
        "as OpenTelemetry reads them",
        "Where workers send traces.",
    ),
    (
        "`ROLLWAY_URL`, `ROLLWAY_TOKEN`",
        "none",
        "an address such as https://rollway.example.com, and a token",
        "The server that commands ask over HTTP, in place of the database.",
    ),
    ("`NO_COLOR`", "none", "anything", "Output without colours."),
)
"""Those that no model reads, in the form of the other rows."""

TOLD = (
    ("`PORT`", "Where to listen."),
    ("`HOST`", "On which address."),
    ("`ROLLWAY_DEPLOYMENT`, `ROLLWAY_REVISION`", "The names of its deployment and its revision."),
    ("`ROLLWAY_ROUTE`", "Its own id."),
    ("`ROLLWAY_DEVICES`", "The devices that it owns, if its revision needs some: `gpu=0+1`."),
    ("`CUDA_VISIBLE_DEVICES`", "Of a process: the ids of its GPUs, `0,1`."),
    ("`ROLLWAY_KEEPER`, `ROLLWAY_ADDRESS`", "How Rollway finds a process again; containers have neither."),
)
"""What every replica has in its environment; its revision cannot override it."""


def environment_page() -> str:
    """What docs/reference/environment.md holds."""
    return page(
        "Variables",
        "An empty variable counts as not set. A wrong one is refused with its name and what would be right.",
        *(
            f"## {who}\n\n" + table(("variable", "default", "what is right", "meaning"), _rows(models))
            for who, models in READERS.items()
        ),
        "## Others\n\n" + table(("variable", "default", "what is right", "meaning"), OF_COMMANDS),
        "## What a replica is told\n\n" + table(("variable", "meaning"), TOLD),
    )


def _rows(models: tuple[type[Settings], ...]) -> list[list[str]]:
    return [
        [f"`{model.model_fields[row.name].validation_alias}`", row.default, row.right, row.meaning]
        for model in models
        for row in rows_of(model)
        if model.model_fields[row.name].validation_alias
    ]
