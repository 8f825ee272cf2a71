"""What type checkers know of the public API; `mypy` fails where a mistake below is none, and where a right call is one."""

from typing import TYPE_CHECKING, get_args

import numpy as np

import pipeplan
from pipeplan.extensions.planning.names import GpuName, ModelName
from pipeplan.foundation.names import FormatName, ScheduleName, TrainerName

if TYPE_CHECKING:
    costs = pipeplan.Settings(ranks=4, forward_times=[1, 2, 3, 4], activation_bytes="2GiB", p2p_time=0.1)
    ranks: int | None = costs.replace(ranks=8, memory_limit=None).ranks
    pipeplan.Settings(rank=4)  # type: ignore[call-arg]
    pipeplan.Settings(ranks="4")  # type: ignore[arg-type]
    costs.replace(rank=3)  # type: ignore[call-arg]

    result: pipeplan.Result = pipeplan.simulate("mine", settings=costs, forward_times=np.ones(4))
    pipeplan.simulate(pipeplan.schedules()["zbv"], settings={"ranks": 4})
    pipeplan.simulate("1f1b", rank=4)  # type: ignore[call-arg]
    pipeplan.simulate("1f1b", settings=3)  # type: ignore[arg-type]
    pipeplan.simulate(None)  # type: ignore[arg-type]

    first: pipeplan.Result = pipeplan.compare(["1f1b", "zbv"], settings="costs.yaml")[0]
    pipeplan.compare(1)  # type: ignore[arg-type]
    pipeplan.sweep(["1f1b", "zbv"], microbatches=[8, 16], memory_limit=[None, "4act"], p2p_time=np.linspace(0, 1))
    pipeplan.sweep("1f1b", microbatches=["a"])  # type: ignore[list-item]
    pipeplan.sweep("1f1b", microbatch=[1])  # type: ignore[call-arg]

    pipeplan.export("1f1b", to="mine", layers_per_stage=[1, 2])
    pipeplan.check("1f1b", trainer="mine")
    pipeplan.search(objective="makspan")  # type: ignore[arg-type]
    pipeplan.register("1f1b")  # type: ignore[arg-type]
    pipeplan.costs.Layer(forward=1, backward_input=1, backward_weight=1, role="hed")  # type: ignore[arg-type]
    pipeplan.testing.check_strategy("1f1b")  # type: ignore[arg-type]


def test_editors_complete_names_of_every_kind():
    for names, some in (
        (ScheduleName, {"1f1b", "zbv"}),
        (FormatName, {"torch-csv", "megatron"}),
        (TrainerName, {"pytorch", "megatron", "torchtitan"}),
        (GpuName, {"h100-sxm"}),
        (ModelName, {"llama3-70b"}),
    ):
        assert some <= set(get_args(names))
