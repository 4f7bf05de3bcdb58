"""Fetches images beside the thread that starts replicas, so that a slow registry holds up no other start."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillRunningError

from runtime.base import ReplicaRequest, ReplicaStartError, RuntimeUnavailableError
from runtime.docker.refusal import EngineRefusalError, docker_spec


class ImagePulls:
    """Pulls each image once at a time. A pull goes on when nobody waits for it, and ends with the worker."""

    def __init__(self, pull: Callable[[str], None], patience_seconds: float) -> None:
        self._pull_image = pull
        self._patience = patience_seconds
        self._lock = threading.Lock()
        self._running: dict[str, Future[None]] = {}

    def provide(self, request: ReplicaRequest) -> None:
        """Fetch the image of a revision. Raises ReplicaStartError when it cannot be had, or shall not be pulled.

        Raises RuntimeUnavailableError while it is being pulled.
        """
        spec = docker_spec(request)
        what = f"the image {spec.image!r} of revision {request.revision!r}"
        if spec.pull == "never":
            raise ReplicaStartError(f"{what} is not on the Docker engine, and docker.pull is 'never'")
        try:
            self.fetch(spec.image)
        except EngineRefusalError as error:
            raise ReplicaStartError(f"{what} cannot be pulled: {error}") from error

    def fetch(self, image: str) -> None:
        """Wait until the image is on the engine. Raises EngineRefusalError when it cannot be had.

        Raises RuntimeUnavailableError when it takes longer than the patience: asked again, it waits for the same pull.
        """
        with self._lock:
            pull = self._running.get(image) or self._begin(image)
        try:
            pull.result(self._patience)
        except StillRunningError:
            if not pull.done():
                raise RuntimeUnavailableError(f"the image {image!r} is still being pulled") from None
            raise
        finally:
            with self._lock:
                if pull.done() and self._running.get(image) is pull:
                    del self._running[image]

    def _begin(self, image: str) -> Future[None]:
        pull: Future[None] = Future()
        self._running[image] = pull
        threading.Thread(target=self._pull, args=(image, pull), name=f"pull {image}", daemon=True).start()
        return pull

    def _pull(self, image: str, pull: Future[None]) -> None:
        try:
            self._pull_image(image)
        except BaseException as error:  # noqa: BLE001  # whoever waits for the pull raises it
            pull.set_exception(error)
        else:
            pull.set_result(None)
