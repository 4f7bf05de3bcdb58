"""What stands in front of the proxies, as a balancer of a cloud does: what they believe of who asks."""

from pydantic import Field

from domain.installation.settings import Settings

MOST_HOPS = 16


class InFront(Settings):
    """What proxies know of callers by what stands in front of them."""

    trusted_hops: int = Field(
        0,
        ge=0,
        le=MOST_HOPS,
        validation_alias="ROLLWAY_TRUSTED_HOPS",
        description=f"a number from 0 to {MOST_HOPS}",
    )
    """How many proxies in front of Envoy are believed: what they say in x-forwarded-for and x-forwarded-proto."""
    proxy_protocol: bool = Field(default=False, validation_alias="ROLLWAY_PROXY_PROTOCOL", description="on or off")
    """Whether each connection to Envoy begins with the PROXY protocol; one without it is closed then."""


NOTHING_IN_FRONT = InFront()
