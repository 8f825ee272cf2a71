"""The free plan against each trainer's own, and these against recipes, in a few questions."""

import pytest

from tests.torture.plans import PLANS


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 4, 7])
def test_no_plan_is_worse_than_a_subset_or_a_recipe(seed, tmp_path):
    PLANS.attempt(seed, tmp_path)
