"""The few questions that Rollway asks a Docker engine. The only module that imports the Docker SDK."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import docker
from docker.errors import APIError, DockerException, InvalidRepository, NotFound
from docker.utils import kwargs_from_env
from requests import RequestException, Timeout
from urllib3.exceptions import HTTPError

from domain.text.storable import storable
from runtime.docker.container import EngineRefusalError
from runtime.protocol import RuntimeUnavailableError

Json = Mapping[str, Any]
_QUIET_SECONDS = 2.0
_CONFLICT = 409
# in the message when dockerd has no containerd any more, is ending, or gave up waiting for a part of its own
_ENGINE_TROUBLE = (": unavailable", "context canceled", "context deadline exceeded", "is shutting down")


class DockerEngine:
    """One engine, local or remote, shared by all threads. Every call raises RuntimeUnavailableError when it is down.

    `url` as in DOCKER_HOST; DOCKER_TLS_VERIFY and DOCKER_CERT_PATH are read from the environment. After a call that
    waited `timeout_seconds` without an answer, calls fail at once for two seconds: a look at many replicas waits only
    once.
    """

    def __init__(self, url: str, timeout_seconds: int) -> None:
        self._url = url
        self._timeout = timeout_seconds
        self._lock = threading.Lock()
        self._connected: docker.APIClient | None = None
        self._quiet_until = 0.0

    def close(self) -> None:
        with self._lock:
            if self._connected:
                self._connected.close()
            self._connected = None

    def inspect(self, name: str) -> Json | None:
        """A container by its name or id; None when there is none."""
        with self._api() as api:
            try:
                container: Json = api.inspect_container(name)
            except NotFound:
                return None
        return container

    def labelled(self, label: str) -> Sequence[Json]:
        """Every container with this `name=value` label, running or not, as `docker ps` knows it."""
        with self._api() as api:
            containers: Sequence[Json] = api.containers(all=True, filters={"label": [label]})
        return containers

    def create(self, name: str, config: Json) -> bool:
        """Create a container; False when the name is taken. Raises EngineRefusalError."""
        with self._api() as api:
            try:
                api.create_container_from_config(dict(config), name)  # type: ignore[no-untyped-call]
            except APIError as error:
                if error.status_code == _CONFLICT:
                    return False
                raise _refusal(error) from error
        return True

    def start(self, name: str) -> bool:
        """Start a container; False when it is gone. No error when it runs already. Raises EngineRefusalError."""
        with self._api() as api:
            try:
                api.start(name)
            except APIError as error:
                if isinstance(error, NotFound) and "no such container" in _message(error).lower():
                    return False
                raise _refusal(error) from error
        return True

    def signal(self, name: str, signal: str) -> None:
        """Signal its main process. No error when it does not run or is gone."""
        with self._api() as api, _gone_is_fine():
            api.kill(name, signal)

    def remove(self, name: str, *, running: bool = False) -> None:
        """Remove it with its anonymous volumes. No error when it is gone, or when it runs and `running` is False."""
        with self._api() as api, _gone_is_fine():
            api.remove_container(name, v=True, force=running)

    def log_tail(self, name: str, lines: int) -> str:
        """The last lines of its output; empty when it is gone, or its logs go where the engine cannot read them."""
        with self._api() as api:
            try:
                text = api.logs(name, tail=lines)
            except APIError as error:
                if isinstance(error, NotFound) or "does not support reading" in _message(error):
                    return ""
                raise
        return text.decode(errors="replace")

    def has_image(self, image: str) -> bool:
        """Whether the image is on the engine. Raises EngineRefusalError when this is no image's name."""
        with self._api() as api:
            try:
                api.inspect_image(image)  # type: ignore[no-untyped-call]
            except NotFound:
                return False
            except APIError as error:
                raise _refusal(error) from error
        return True

    def pull(self, image: str) -> None:
        """Fetch an image from its registry, however long that takes. Raises EngineRefusalError."""
        with self._api() as api:
            try:
                for step in api.pull(image, stream=True, decode=True):
                    if "error" in step:
                        raise EngineRefusalError(_one_line(step["error"]))
            except APIError as error:
                raise EngineRefusalError(_message(error)) from error
            except InvalidRepository as error:
                raise EngineRefusalError(_one_line(str(error))) from error

    @contextmanager
    def _api(self) -> Iterator[docker.APIClient]:
        try:
            yield self._client()
        except RuntimeUnavailableError:
            raise
        except Timeout as error:
            raise self._silent() from error
        except APIError as error:
            raise RuntimeUnavailableError(
                f"the Docker engine at {self._url} is in trouble: {_message(error)}"
            ) from error
        except (RequestException, HTTPError, DockerException, OSError) as error:
            raise RuntimeUnavailableError(f"no Docker engine answers at {self._url}") from error

    def _client(self) -> docker.APIClient:
        with self._lock:  # a call that waits for the first question of another learns here that it failed
            if time.monotonic() < self._quiet_until:
                raise RuntimeUnavailableError(f"the Docker engine at {self._url} did not answer a moment ago")
            if self._connected is None:
                self._connected = self._connect()
            return self._connected

    def _connect(self) -> docker.APIClient:
        """The SDK asks for the engine's version, and has an error of its own for every failure."""
        settings = kwargs_from_env() | {"base_url": self._url}
        try:
            return _EngineClient(timeout=self._timeout, use_ssh_client=True, **settings)
        except DockerException as error:
            if isinstance(error.__cause__, Timeout):
                raise self._silent() from error
            raise

    def _silent(self) -> RuntimeUnavailableError:
        self._quiet_until = time.monotonic() + _QUIET_SECONDS
        return RuntimeUnavailableError(f"the Docker engine at {self._url} does not answer in time")


class _EngineClient(docker.APIClient):
    """The SDK's, which forgets DOCKER_CERT_PATH where REQUESTS_CA_BUNDLE is set (psf/requests#3829)."""

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> Any:  # noqa: ANN401  # requests' own
        return super().merge_environment_settings(url, proxies, stream, self.verify if verify is None else verify, cert)


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    try:
        yield
    except APIError as error:
        if not (isinstance(error, NotFound) or error.status_code == _CONFLICT):
            raise


def _refusal(error: APIError) -> Exception:
    """The error to raise: a refusal, unless the engine is in trouble and refuses everything."""
    return error if _is_trouble(error) else EngineRefusalError(_message(error))


def _is_trouble(error: APIError) -> bool:
    return any(sign in _message(error).lower() for sign in _ENGINE_TROUBLE)


def _message(error: APIError) -> str:
    return _one_line(str(error.explanation or error))


def _one_line(text: str) -> str:
    return storable(" ".join(text.split()))[:400]
