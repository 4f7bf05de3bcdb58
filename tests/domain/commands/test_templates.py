"""The texts that a new deployment begins with: each is a whole document, and each of its fields has one line of it."""

import pytest

from domain.commands.apply.templates import HTTP_SERVICE, TEMPLATES, Template, filled

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
