"""Paths of the API for people, with names in braces."""

import re

DEPLOYMENT = "/v1/deployments/{deployment}"


def named_in(path: str) -> tuple[str, ...]:
    """The fields that a path names, as `deployment` in `/v1/deployments/{deployment}/pause`."""
    return tuple(re.findall(r"{(\w+)}", path))
