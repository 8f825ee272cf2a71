"""What an export sets, taken and validated by Megatron-Bridge's own ``ConfigContainer``."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pipeplan.extensions.planning.workload import model
from pipeplan.formats import Training
from pipeplan.model import Schedule
from pipeplan.passes import insert_recompute
from pipeplan.trainers.bridge import bridge_settings
from tests.peers.bridge.container import Case, Job
from tests.peers.bridge.test_planned import SOURCES, model_of
from tests.peers.plans import published
from tests.peers.planted import planted_code
from tests.processes import run_ranks

USE = """
from megatron.bridge import recipes
from megatron.bridge.training.pretrain import pretrain

pretrain(scheduled(recipes.recipe()), None)
"""


SHAPES: dict[str, tuple[Schedule, tuple[int, ...] | None]] = {
    "1f1b": (published("1f1b", 4, 8), (9, 8, 8, 7)),
    "without layers": (published("1f1b", 4, 8), None),
    "recomputed": (insert_recompute(published("1f1b", 2, 4)), None),
    "interleaved on two ranks": (published("interleaved-1f1b", 2, 4, 2), None),
    "interleaved": (published("interleaved-1f1b", 4, 8, 2), (3, 4, 4, 4, 4, 4, 5, 4)),
}


def case(name: str) -> Case:
    schedule, layers = SHAPES[name]
    training = Training(layers=layers, microbatch_size=2, sequence_length=4096, data_parallel=2)
    chunks, full = schedule.placement.chunks, name == "recomputed"
    wanted: dict[str, Any] = {
        "model.pipeline_model_parallel_size": schedule.ranks,
        "model.virtual_pipeline_model_parallel_size": chunks if chunks > 1 else None,
        "model.pipeline_model_parallel_layout": None,
        "model.num_layers_in_first_pipeline_stage": None,
        "model.num_layers_in_last_pipeline_stage": None,
        "model.account_for_embedding_in_pipeline_split": False,
        "model.account_for_loss_in_pipeline_split": False,
        "model.overlap_p2p_comm": chunks > 1,
        "model.batch_p2p_comm": chunks == 1,
        "model.overlap_moe_expert_parallel_comm": False,
        "model.delay_wgrad_compute": False,
        "model.seq_length": 4096,
        "dataset.seq_length": 4096,
        "train.micro_batch_size": 2,
        "train.global_batch_size": 4 * schedule.microbatches,
        # The recipe recomputes selectively, which an export leaves as it is.
        "model.recompute_granularity": "full" if full else "selective",
        "model.recompute_method": "uniform" if full else None,
        "model.recompute_num_layers": 1 if full else None,
    }
    if chunks > 1:
        wanted["model.microbatch_group_size_per_vp_stage"] = schedule.ranks
    if layers is not None:
        stages = [["decoder"] * count for count in layers]
        stages[0].insert(0, "embedding")
        stages[-1].append("loss")
        wanted["model.pipeline_model_parallel_layout"] = stages
    code = bridge_settings(schedule, training).text + USE
    return Case(code, {}, model_of(model("llama-3-8b")), wanted, 2 * schedule.ranks, "NVIDIA H100", "hopper")


def test_its_container_takes_every_export(ran: Callable[[str], None]):
    cases = {name: case(name) for name in SHAPES}
    [faults] = run_ranks("tests.peers.bridge.container", 1, Job(SOURCES, cases), timeout=900)
    assert {name: wrong for name, wrong in faults.items() if wrong} == {}
    ran(f"its validate on {len(cases)} exports")


WITHOUT_EFFECT = {"recomputed: cfg.model.microbatch_group_size_per_vp_stage"} | {
    f"interleaved: cfg.model.recompute_{name}" for name in ("granularity", "method", "num_layers")
}
"""Without chunks there are no groups, and the recipe does not recompute in full, which an export would undo."""


@pytest.mark.nightly
def test_every_planted_value_is_found(ran: Callable[[str], None]):
    cases: dict[str, Case] = {}
    for name in ("interleaved", "recomputed"):
        right = case(name)
        cases |= {f"{name}: {field}": replace(right, code=code) for field, code in planted_code(right.code)}
    [faults] = run_ranks("tests.peers.bridge.container", 1, Job(SOURCES, cases), timeout=900)
    missed = {name for name in cases if not faults[name]}
    assert missed == WITHOUT_EFFECT
    ran(f"{len(cases)} wrong values planted in exports")
