"""What the thieves need: a server for people, and a home whose replicas end with the test."""

from tests.api.people.conftest import people
from tests.runtime.conftest import home

__all__ = ["home", "people"]
