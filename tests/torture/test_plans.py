"""The free plan against each trainer's own, and these against recipes, in a few questions; ``make torture`` asks more."""

import pytest

from tests.torture.plans import PLANS
from tests.torture.running import tried


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 4, 7])
def test_no_plan_is_worse_than_a_subset_or_a_recipe(seed):
    assert tried(PLANS.name, seed).fault is None
