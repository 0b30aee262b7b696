"""What all tests share: nothing is timed, because machines are noisy; speed is measured in `bench/`."""

from __future__ import annotations

import os

from hypothesis import Phase, settings

settings.register_profile("default", deadline=None)
# For `make mutation`, which repeats the suite for each mutant: few examples, the same ones in every run, and no search
# for the smallest once one fails.
settings.register_profile(
    "mutation",
    deadline=None,
    max_examples=10,
    stateful_step_count=15,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
