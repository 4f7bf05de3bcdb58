"""What the thieves need: a server for people, and a home whose replicas end with the test."""

from tests.api.people.conftest import people
from tests.runtime.conftest import docker_api, home

__all__ = ["docker_api", "home", "people"]
