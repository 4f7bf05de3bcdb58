"""Forms of the page: whether a page of this server has sent them, and what they say, as a command's fields have it."""

import hashlib
import hmac
import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from api.people.auth import is_of_this_site
from api.people.strict_yaml import documents_of, lines_in
from domain.commands.base import Command
from domain.commands.fields import CommandField, fields_of
from domain.installation.tokens import NotAllowedError
from domain.text.errors import InvalidInputError

FORM_TOKEN = "form_token"  # noqa: S105  (the name of a field)
DOCUMENTS = "documents"
"""The field with the text of a file."""
_MOST_FIELDS = 60


def form_token(secret: str) -> str:
    """The token of this session's forms, which another site cannot know."""
    return hmac.new(secret.encode(), b"a form of the page", hashlib.sha256).hexdigest()


async def form_fields(request: Request, secret: str) -> Mapping[str, str]:
    """The fields of a form, without its token. Raises NotAllowedError for one that no page of ours has sent."""
    fields = await _fields(request)
    if not hmac.compare_digest(fields.pop(FORM_TOKEN, "").encode(), form_token(secret).encode()):
        raise NotAllowedError("this form is not of this page, or of an earlier login; load the page again")
    return fields


async def fields_of_stranger(request: Request) -> Mapping[str, str]:
    """The fields of the form to log in. Raises NotAllowedError for one that another site has sent."""
    return await _fields(request)


async def _fields(request: Request) -> dict[str, str]:
    """Browsers say which site a form comes from: the field alone need not be believed."""
    if not is_of_this_site(request):
        raise NotAllowedError("this form comes from another site")
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise InvalidInputError("the body is no form", field="") from None


def body_of(command: type[Command], form: Mapping[str, str]) -> dict[str, Any]:
    """The fields as they were filled in. Raises InvalidInputError, which names each wrong field."""
    values = {field.name: _value(field, form[field.name]) for field in fields_of(command) if form.get(field.name)}
    return {**values, **({"reason": form["reason"]} if form.get("reason") else {})}


def _value(field: CommandField, text: str) -> Any:  # noqa: ANN401  (JSON)
    try:
        match field.kind:
            case "integer" | "number" if text == "null":
                return None
            case "integer":
                return int(text)
            case "number":
                return float(text)
            case "boolean":
                return text == "true"
            case "words":
                return shlex.split(text)
            case "documents":
                return _as_json(text, is_single=False)
            case "values" | "items" | "variables" | "amount":
                return _as_json(text, is_single=True)
            case "text":
                return text
    except ValueError as error:
        why = "must be a number" if field.kind in ("integer", "number") else str(error)
        raise InvalidInputError(f"{field.name}: {why}", field=field.name) from None


@contextmanager
def with_lines_of(form: Mapping[str, str]) -> Iterator[None]:
    """Refusals of documents name the line of the text in the form."""
    try:
        yield
    except InvalidInputError as error:
        text = form.get(DOCUMENTS, "")
        if not text or not error.faults:
            raise
        line_of = lines_in(text)
        raise error.with_lines(lambda path: line_of(path[1:]) if path[:1] == (DOCUMENTS,) else None) from None


def _as_json(text: str, *, is_single: bool) -> object:
    """The value of a YAML text: of one document, or a list of several. Raises ValueError."""
    documents = documents_of(text)
    try:
        json.dumps(documents)
    except TypeError:
        raise ValueError("holds a date or another value that JSON has not; quote it if it is meant as text") from None
    match [document for document in documents if is_single or document is not None]:
        case [list(items)]:
            return items
        case [value] if is_single:
            return value
        case several if not is_single:
            return several
    raise ValueError("must hold one YAML document")
