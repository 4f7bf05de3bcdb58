"""Where the server for proxies listens."""

from pydantic import Field

from domain.settings import Settings

API_PORT = 7070


class ApiSettings(Settings):
    """`host`: an address of this machine. Who reaches the port learns where replicas are, and can delay drains."""

    host: str = Field("127.0.0.1", validation_alias="ROLLWAY_API_HOST")
    port: int = Field(
        API_PORT, ge=1, le=65_535, validation_alias="ROLLWAY_API_PORT", description="a port from 1 to 65535"
    )
