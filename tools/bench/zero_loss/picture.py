"""How the deployment under load stands at one moment, as the database has it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RouteSeen:
    """One replica that is not known to be gone."""

    id: str
    revision: str
    status: str
    traffic: str
    address: str
    handle: str

    @property
    def serves(self) -> bool:
        """Whether it is healthy and in traffic."""
        return self.status == "healthy" and self.traffic == "active"


@dataclass(frozen=True, slots=True)
class Picture:
    """How the deployment stands."""

    lifecycle: str
    rolls_out: bool
    routes: tuple[RouteSeen, ...]

    def of(self, revision: str) -> list[RouteSeen]:
        """Its replicas of one revision."""
        return [route for route in self.routes if route.revision == revision]
