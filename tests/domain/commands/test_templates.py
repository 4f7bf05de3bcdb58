"""The texts that a new deployment begins with: each is a whole document, and each of its fields has one line of it."""

import pytest
import yaml

from domain.commands.apply.document import Document
from domain.commands.apply.templates import HTTP_SERVICE, TEMPLATES, Template, filled
from domain.commands.fields import field_at

templates = pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)


@templates
def test_each_field_of_a_template_has_one_line_and_says_what_it_means(template: Template) -> None:
    for each in template.fields:
        lines = [line for line in template.text.splitlines() if line.startswith(each.line)]
        assert len(lines) == 1, each.line
        assert each.field.meaning, each.label


def test_a_value_stands_in_its_line_as_yaml_reads_it() -> None:
    values: dict[str, str | int] = {
        "deployment: ": "no",
        "replicas: ": 3,
        "  command: ": "python3 -c 'print(\"a: b\")'",
    }
    lines = filled(HTTP_SERVICE.text, values).splitlines()
    assert lines[:2] == ['deployment: "no"', "replicas: 3"]
    assert lines[3] == '  command: "python3 -c \'print(\\"a: b\\")\'"'
    assert lines[4:] == HTTP_SERVICE.text.splitlines()[4:]
    assert filled(HTTP_SERVICE.text, {}) == HTTP_SERVICE.text


@pytest.mark.parametrize(
    ("value", "scalar"),
    [
        (3, "3"),
        ("web", "web"),
        ("/srv/web/serve.py", "/srv/web/serve.py"),
        ("registry.example.com/web:2", "registry.example.com/web:2"),
        ("python3 -m http.server {port}", "python3 -m http.server {port}"),
        ("worker -n w@%h a=b~ c+d", "worker -n w@%h a=b~ c+d"),
        ("notes", "notes"),
        ("", '""'),
        ("12", '"12"'),
        ("-x", '"-x"'),
        ("a  b", '"a  b"'),
        (" a", '" a"'),
        ("a #b", '"a #b"'),
        ("a: b", '"a: b"'),
        ("web:", '"web:"'),
        ("wéb", '"w\\u00e9b"'),
        *((word, f'"{word}"') for word in ("true", "False", "YES", "no", "On", "off", "null", "y", "N")),
    ],
)
def test_a_value_is_in_quotes_where_yaml_would_read_it_otherwise(value: str | int, scalar: str) -> None:
    text = filled("deployment: web\nreplicas: 2\n", {"deployment: ": value})
    assert text == f"deployment: {scalar}\nreplicas: 2\n"
    assert yaml.safe_load(text) == {"deployment": value, "replicas": 2}


HEALTH = "revision.health_check.path"


@pytest.mark.parametrize(
    ("name", "asks"),
    [
        ("http_service", ["deployment", "revision.command", HEALTH, "replicas"]),
        ("container", ["deployment", "revision.docker.image", "revision.docker.port", HEALTH, "replicas"]),
        ("blue_green", ["deployment", "revision.command", HEALTH, "replicas"]),
        ("canary", ["deployment", "revision.command", HEALTH, "replicas"]),
        ("celery_worker", ["deployment", "revision.command", "revision.working_directory", HEALTH, "replicas"]),
    ],
)
def test_people_are_offered_these_and_each_asks_for_what_differs(name: str, asks: list[str]) -> None:
    template = TEMPLATES[[each.name for each in TEMPLATES].index(name)]
    assert [each.field for each in template.fields] == [field_at(Document, path) for path in asks]
    for each, path in zip(template.fields, asks, strict=True):
        *above, last = path.split(".")
        assert each.line == f"{'  ' * len(above)}{last}: "


def test_the_first_that_is_offered_is_the_plain_service() -> None:
    assert TEMPLATES[0] is HTTP_SERVICE
    assert len({template.name for template in TEMPLATES}) == len(TEMPLATES) == 5


@templates
def test_a_template_is_a_whole_document_of_what_it_is_called(template: Template) -> None:
    document = Document.model_validate(yaml.safe_load(template.text))
    assert document.revision is not None
    assert document.revision.health_check is not None
    assert document.parsed_policy is not None
    assert document.replicas == 2
    kind = {"http_service": "rolling_update", "container": "rolling_update", "celery_worker": "rolling_update"}
    assert document.parsed_policy.strategy == kind.get(template.name, template.name)
    assert document.revision.runtime == ("docker" if template.name == "container" else "process")
