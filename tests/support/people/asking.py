"""Asking the server for proxies, with the token of a node id."""

import httpx

from domain.traffic.nodes import token_of
from tests.support.proxies import plain_http

KEY = "the key of this installation, as tests have it"


def with_token(node_id: str) -> dict[str, str]:
    """Who asks, for the query of a URL."""
    return {"node": node_id, "token": token_of(node_id, KEY)}


def page(server: str, path: str) -> httpx.Response:
    """A page of the server for proxies at this URL, as a person reads it."""
    return plain_http.get(f"{server}{path}", params=with_token("a-person"))
