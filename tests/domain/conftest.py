"""Hypothesis profiles: the same few hundred examples in every run; HYPOTHESIS_PROFILE=soak looks for new ones."""

import os

from hypothesis import settings

settings.register_profile("ci", max_examples=100, derandomize=True, deadline=None, database=None)
settings.register_profile("soak", max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "20000")), deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
