"""Names of proxies, and how each shows that a name is its own."""

import hashlib
import hmac
import re
from typing import Annotated

from pydantic import AfterValidator

_NODE_ID = re.compile(r"[\x21-\x7e]{1,200}")


def is_node_id(value: str) -> bool:
    """Whether a proxy may be called that."""
    return _NODE_ID.fullmatch(value) is not None


def _checked_id(value: str) -> str:
    if not is_node_id(value):
        raise ValueError("must be 1 to 200 printable ASCII characters without blanks, such as edge-1")
    return value


NodeId = Annotated[str, AfterValidator(_checked_id)]


def token_of(node_id: str, key: str) -> str:
    """The proof of the proxy with this id: it takes the key to make it, and it is valid for no other id."""
    return hmac.new(key.encode(), node_id.encode(), hashlib.sha256).hexdigest()


def is_token_of(node_id: str, token: str, key: str) -> bool:
    """Whether this token is the proxy's; how long that takes says nothing about how much of it is right."""
    return hmac.compare_digest(token_of(node_id, key).encode(), token.encode(errors="replace"))
