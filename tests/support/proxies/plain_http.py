"""Plain HTTP to what a test has started: each request on a connection of its own, and no certificates are loaded.

Who answers late on a busy machine is waited for: httpx alone gives up after 5 s.
"""

from functools import partial

import httpx

_SECONDS = 20.0

get = partial(httpx.get, trust_env=False, verify=False, timeout=_SECONDS)
post = partial(httpx.post, trust_env=False, verify=False, timeout=_SECONDS)
request = partial(httpx.request, trust_env=False, verify=False, timeout=_SECONDS)
