"""Which names proxies may have, and the token that shows that one is a proxy's own."""

import pytest
from pydantic import TypeAdapter, ValidationError

from domain.traffic.nodes import NodeId, is_node_id, is_token_of, token_of

KEY = "a key of thirty-two characters at least"


@pytest.mark.parametrize("name", ["edge-1", "a", "!", "a" * 200])
def test_a_proxy_has_a_name_of_printable_characters(name: str) -> None:
    assert is_node_id(name)
    assert TypeAdapter(NodeId).validate_python(name) == name


@pytest.mark.parametrize("name", ["", "edge 1", "edge\n", "kante-ä", "a" * 201])
def test_any_other_name_is_refused_and_told_what_is_right(name: str) -> None:
    assert not is_node_id(name)
    with pytest.raises(ValidationError, match="must be 1 to 200 printable ASCII characters without blanks"):
        TypeAdapter(NodeId).validate_python(name)


def test_a_token_is_of_one_proxy_and_one_key() -> None:
    token = token_of("edge-1", KEY)
    assert is_token_of("edge-1", token, KEY)
    assert not is_token_of("edge-2", token, KEY)
    assert not is_token_of("edge-1", token, f"another {KEY}")
    assert not is_token_of("edge-1", "\ud800", KEY)
