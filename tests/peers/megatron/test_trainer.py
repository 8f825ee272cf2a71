"""What a plan gives to paste, read and validated by Megatron-LM's own trainer, where its source is at hand.

The package from PyPI has no ``megatron.training``. ``PIPEPLAN_MEGATRON_SOURCE`` names the folder of a clone of Megatron-LM,
or several with ``:`` between them; each is read with the Megatron-core in it.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeplan.trainers import flags_of
from tests.peers.megatron.expected import expected
from tests.peers.megatron.trainer import Case, Job
from tests.peers.plans import PLANS, plan
from tests.peers.processes import run_ranks
from tests.peers.shell import pasted

ARRAYS = ("MODEL_ARGS", "PARALLEL_ARGS", "RUN_ARGS", "PIPELINE_ARGS")
VARIABLE = "PIPEPLAN_MEGATRON_SOURCE"
SOURCES = [source for source in os.environ.get(VARIABLE, "").split(":") if source]

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not SOURCES, reason=f"set {VARIABLE} to a clone of Megatron-LM: its trainer is not in the package"
    ),
]


def case(name: str) -> Case:
    shape, machines, configuration = plan(name)
    text = flags_of(shape, machines, configuration)["megatron"].text
    wanted = expected(shape, machines, configuration)
    return Case(pasted(text, ARRAYS), wanted, configuration.gpus, configuration.data)


@pytest.mark.parametrize("source", SOURCES)
def test_its_trainer_reads_every_plan_as_planned(source: str, ran: Callable[[str], None]):
    assert (Path(source) / "megatron" / "training" / "arguments.py").is_file()
    [faults] = run_ranks("tests.peers.megatron.trainer", 1, Job(source, {name: case(name) for name in PLANS}))
    assert {name: wrong for name, wrong in faults.items() if wrong} == {}
    ran(f"its validate_args of {Path(source).name} on the flags of {len(PLANS)} plans")
