"""No change of what programs rely on goes unnoticed, and no change of words for people is taken for one."""

import json
from typing import Any

import pytest

from domain.commands.base import QUERIES
from domain.commands.registry import COMMANDS
from tools.reference.contract import contract_page, fingerprint, inlined
from tools.reference.pages import DOCUMENTS, written

SCHEMAS: dict[str, Any] = {"Size": {"type": "integer", "maximum": 5, "title": "Size"}}
FORM: dict[str, Any] = {
    "description": "What is wanted.",
    "properties": {"title": {"type": "string"}, "size": {"$ref": "#/components/schemas/Size"}},
    "required": ["size"],
}
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a field more": ({**FORM, "properties": {**FORM["properties"], "why": {"type": "string"}}}, SCHEMAS),
    "a field called as a word for people is gone": (
        {**FORM, "properties": {"size": FORM["properties"]["size"]}},
        SCHEMAS,
    ),
    "a field is needed": ({**FORM, "required": ["size", "title"]}, SCHEMAS),
    "a limit of what is referred to": (FORM, {"Size": {"type": "integer", "maximum": 6}}),
}


@pytest.mark.parametrize(("form", "schemas"), CHANGES.values(), ids=CHANGES)
def test_a_change_of_the_form_changes_the_fingerprint(form: dict[str, Any], schemas: dict[str, Any]) -> None:
    assert fingerprint(inlined(form, schemas)) != fingerprint(inlined(FORM, SCHEMAS))


def test_other_words_for_people_and_another_name_of_a_class_do_not() -> None:
    form = {**FORM, "description": "Said otherwise.", "example": {"size": 3}}
    form["properties"] = {"title": {"type": "string", "title": "T"}, "size": {"$ref": "#/components/schemas/Count"}}
    assert fingerprint(inlined(form, {"Count": SCHEMAS["Size"]})) == fingerprint(inlined(FORM, SCHEMAS))


def test_a_form_that_holds_itself_is_inlined_once() -> None:
    tree = {"properties": {"below": {"$ref": "#/components/schemas/Tree"}}}
    assert inlined(tree, {"Tree": tree}) == {"properties": {"below": {"properties": {"below": {"again": "Tree"}}}}}


def test_every_path_and_every_task_has_a_line() -> None:
    page = contract_page()
    paths = DOCUMENTS["openapi.json"]()["paths"]
    asked = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    lines = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    assert lines == asked | {*COMMANDS, *QUERIES}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_for_programs_is_json(name: str) -> None:
    document = DOCUMENTS[name]()
    assert json.loads(written(document)) == document
