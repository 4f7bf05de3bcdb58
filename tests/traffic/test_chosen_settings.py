"""The table of Envoy's settings in docs/limits.md, held to what proxies are told."""

import re
from pathlib import Path
from typing import Any

import pytest

from traffic.envoy.bootstrap import filter_of_requests
from traffic.envoy.clusters import cluster

PAGE = Path(__file__).parents[2] / "docs/limits.md"
ROW = re.compile(r"^\| `(?P<setting>[a-z0-9_.]+)` \| [^|]+ \| (?P<rollway>[^|]+) \| [^|]+ \|$", re.MULTILINE)
ROWS = {row["setting"]: row["rollway"] for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}


def settings() -> dict[str, Any]:
    made = cluster("web")
    (upstream,) = made["typed_extension_protocol_options"].values()
    return {"http_connection_manager": filter_of_requests()["typed_config"], "cluster": made, "upstream": upstream}


def at(path: str) -> object:
    value: Any = settings()
    for name in path.split("."):
        value = value[name]
    return value


@pytest.mark.parametrize("setting", ROWS)
def test_each_setting_is_as_the_page_says(setting: str) -> None:
    value = at(setting)
    assert (str(value).lower() if isinstance(value, bool) else str(value)) == ROWS[setting]


@pytest.mark.parametrize(
    "group",
    [
        "cluster.outlier_detection",
        "cluster.least_request_lb_config",
        "upstream.common_http_protocol_options",
        "http_connection_manager.common_http_protocol_options",
    ],
)
def test_each_setting_of_these_is_on_the_page(group: str) -> None:
    values = at(group)
    assert isinstance(values, dict)
    named = {name for name in values if not name.startswith("enforcing_consecutive")}
    assert {f"{group}.{name}" for name in named} <= set(ROWS)
