"""Checks the token of a proxy's node id, before anything about it is recorded."""

import time
from dataclasses import dataclass, field

import structlog
from starlette.exceptions import HTTPException

from api.proxies.server_metrics import Observed
from domain.traffic.nodes import is_token_of

_MISSING = "This needs a token: 'rollway envoy-bootstrap' and 'rollway proxy-token' make the one of a node id."
_WRONG = "This is not the token of that node id: it was made for another id, or with another ROLLWAY_PROXY_KEY."
_TOLD_EVERY = 60.0
_log = structlog.get_logger(__name__)


@dataclass(eq=False, slots=True)
class ProxyAccess:
    """Access of proxies. `key`: of the installation.

    None on a server that only its own machine reaches: any id is believed.
    """

    observed: Observed
    key: str | None = field(repr=False)
    _told_at: float = float("-inf")

    def check(self, node_id: str, token: str) -> None:
        """Raises HTTPException: 401 without a token, 403 with a wrong one."""
        why = self.why_not(node_id, token)
        if why is not None:
            raise HTTPException(403 if token else 401, why)

    def why_not(self, node_id: str, token: str) -> str | None:
        """The refusal of a stranger; None for a proxy with its token."""
        if self.key is None or is_token_of(node_id, token, self.key):
            return None
        self.observed.strangers.inc()
        if time.monotonic() - self._told_at > _TOLD_EVERY:
            self._told_at = time.monotonic()
            _log.warning("a request without the token of its node id was refused", node=node_id)
        return _WRONG if token else _MISSING
