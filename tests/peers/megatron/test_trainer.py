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
from tests.peers.plans import PLANS, Planned, drawn, plan
from tests.peers.shell import launched
from tests.processes import run_ranks

VARIABLE = "PIPEPLAN_MEGATRON_SOURCE"
SOURCES = [source for source in os.environ.get(VARIABLE, "").split(":") if source]

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not SOURCES, reason=f"set {VARIABLE} to a clone of Megatron-LM: its trainer is not in the package"
    ),
]


DRAWN = drawn(105, ("megatron-core", "megatron-core-plain", "nemo", "megatron-bridge", "megatron-bridge-26.02"))


def case(planned: Planned) -> Case:
    shape, machines, configuration = planned
    text = flags_of(shape, machines, configuration)["megatron"].text
    wanted = expected(shape, machines, configuration)
    return Case(launched(text), wanted, configuration.gpus, machines.gpu.generation, configuration.data)


@pytest.mark.parametrize("source", SOURCES)
def test_its_trainer_reads_every_plan_as_planned(source: str, ran: Callable[[str], None]):
    assert (Path(source) / "megatron" / "training" / "arguments.py").is_file()
    plans = {name: plan(name) for name in PLANS} | DRAWN
    job = Job(source, {name: case(planned) for name, planned in plans.items()})
    [faults] = run_ranks("tests.peers.megatron.trainer", 1, job, timeout=1800)
    assert {name: wrong for name, wrong in faults.items() if wrong} == {}
    ran(f"its validate_args of {Path(source).name} on the flags of {len(plans)} plans")
