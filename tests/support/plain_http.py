"""Plain HTTP to what a test has started: each request on a connection of its own, and no certificates are loaded."""

from functools import partial

import httpx

get = partial(httpx.get, trust_env=False, verify=False)
post = partial(httpx.post, trust_env=False, verify=False)
request = partial(httpx.request, trust_env=False, verify=False)
