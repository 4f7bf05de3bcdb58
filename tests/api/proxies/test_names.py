"""Replicas whose address is a name."""

import asyncio

import pytest

from api.proxies.resolver import Names


@pytest.mark.parametrize(("name", "changes"), [("localhost", 1), ("0xa9fea9fe", 0), ("no-such-host.invalid", 0)])
def test_a_name_is_a_replica_unless_it_leads_to_where_none_can_be(name: str, changes: int) -> None:
    """A name server may say anything; 0xa9fea9fe is 169.254.169.254 to every resolver."""
    told = []

    async def look_up() -> None:
        await Names()._look_up(name, lambda: told.append(name))

    asyncio.run(look_up())
    assert len(told) == changes
