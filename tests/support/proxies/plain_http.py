"""Plain HTTP to what a test has started, without loading the certificates of all authorities: that takes 20 ms.

Each request is on a connection of its own, but for those of a Client. Who answers late on a busy machine is waited
for: httpx alone gives up after 5 s.
"""

from functools import partial

import httpx

_SECONDS = 20.0

get = partial(httpx.get, trust_env=False, verify=False, timeout=_SECONDS)
post = partial(httpx.post, trust_env=False, verify=False, timeout=_SECONDS)
request = partial(httpx.request, trust_env=False, verify=False, timeout=_SECONDS)
Client = partial(httpx.Client, trust_env=False, verify=False, timeout=_SECONDS)
