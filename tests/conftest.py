"""What all tests share: nothing is timed, because machines are noisy; speed is measured in `bench/`."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("default", deadline=None)
# For runs that repeat the suite very often, such as `make mutation`.
settings.register_profile("quick", deadline=None, max_examples=15, stateful_step_count=15)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
