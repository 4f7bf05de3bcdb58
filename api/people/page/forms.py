"""Forms of the page: what they carry, and whether a page of this server has sent them."""

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from api.people.asking.access import is_of_this_site
from domain.installation.tokens import NotAllowedError
from domain.words.errors import InvalidInputError

FORM_TOKEN = "form_token"  # noqa: S105  (the name of a field)
_MOST_FIELDS = 20


def form_token(secret: str) -> str:
    """What every form of who has logged in with this secret carries: another site cannot know it."""
    return hmac.new(secret.encode(), b"a form of the page", hashlib.sha256).hexdigest()


async def fields_of(request: Request, secret: str) -> Mapping[str, str]:
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
