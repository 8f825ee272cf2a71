"""Rules take as long as there are ops, however many ranks wait for each other."""

import pytest

from pipeplan.foundation.kernels import Kernel
from pipeplan.model import ops
from pipeplan.strategies import STRATEGIES, controllable_memory, hanayo, zero_bubble
from pipeplan.strategies.building_block_kernel import run_block
from tests.steps import steps


def _made(name, ranks):
    """What a strategy's rule for so many ranks asks of numpy, in ops, and the lines of Python that it runs."""
    taken = [0]

    def counted(*arguments):
        result = ops(*arguments)
        taken[0] += len(result)
        return result

    strategy = STRATEGIES[name]
    with pytest.MonkeyPatch.context() as patch:
        for module in (zero_bubble, hanayo, controllable_memory):
            patch.setattr(module, "ops", counted)
        patch.setattr(controllable_memory, "_RUN_BLOCK", Kernel(run_block, native=False))
        lines = steps(lambda: strategy(strategy.shape(ranks, 2)))
    return taken[0], lines


@pytest.mark.parametrize("name", ["zbv", "hanayo", "v-min", "v-half", "zbv-heuristic"])
def test_rules_take_as_long_as_there_are_ops(name):
    small, large = _made(name, 16), _made(name, 64)
    assert large[0] <= 4 * small[0]
    assert large[1] < 5 * small[1]
