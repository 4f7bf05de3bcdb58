"""Settings for a balancer in front of the proxies: which of its statements about callers the proxies believe."""

from pydantic import Field

from domain.installation.settings import Settings

MOST_HOPS = 16


class InFront(Settings):
    """The settings of a balancer in front of the proxies."""

    trusted_hops: int = Field(
        0, ge=0, le=MOST_HOPS, validation_alias="ROLLWAY_TRUSTED_HOPS", description=f"a number from 0 to {MOST_HOPS}"
    )
    """The number of proxies in front of Envoy whose x-forwarded-for and x-forwarded-proto are believed."""
    proxy_protocol: bool = Field(default=False, validation_alias="ROLLWAY_PROXY_PROTOCOL", description="on or off")
    """Whether each connection to Envoy begins with the PROXY protocol; one without it is closed then."""


NOTHING_IN_FRONT = InFront()
