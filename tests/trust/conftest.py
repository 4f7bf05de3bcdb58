"""What the thieves need: a server for people, and a home whose replicas end with the test."""

from tests.api.people.conftest import people_server
from tests.runtime.conftest import docker_api, replica_home

__all__ = ["docker_api", "people_server", "replica_home"]
