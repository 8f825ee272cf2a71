"""Experiment files that we write, read by Primus, validated by its Megatron-LM, and ordered by its own schedulers.

``PIPEPLAN_PRIMUS_SOURCE`` names the folder of a clone of Primus and the folder of the Megatron-LM that it is for, with ``:``
between them; no package has them.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeplan.formats import Training
from pipeplan.model import Schedule
from pipeplan.trainers.primus import ALGORITHMS, primus_settings
from tests.peers.megatron.primus import Case, Job
from tests.peers.plans import published
from tests.processes import run_ranks

VARIABLE = "PIPEPLAN_PRIMUS_SOURCE"
SOURCES = [source for source in os.environ.get(VARIABLE, "").split(":") if source]

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not SOURCES, reason=f"set {VARIABLE} to clones of Primus and of its Megatron-LM"),
]

REPLICAS, SIZE, SEQUENCE = 2, 2, 2048


SHAPES: dict[str, tuple[Schedule, tuple[int, ...] | None]] = {
    "1f1b": (published("1f1b", 4, 8), None),
    "1f1b with layers": (published("1f1b", 4, 8), (21, 20, 20, 19)),
    "interleaved on two ranks": (published("interleaved-1f1b", 2, 4, 2), None),
    "interleaved with layers": (published("interleaved-1f1b", 4, 8, 2), (9, *[10] * 6, 11)),
} | {
    f"{name} of {ranks} ranks and {microbatches} microbatches": (published(name, ranks, microbatches), None)
    for name, (_, least) in ALGORITHMS.items()
    for ranks in (2, 4, 5, 8)
    if 80 % (ranks * (2 if name == "zbv" else 1)) == 0
    for microbatches in (least(ranks), least(ranks) + 1, 3 * ranks)
}


def case(name: str) -> Case:
    schedule, layers = SHAPES[name]
    training = Training(layers=layers, microbatch_size=SIZE, sequence_length=SEQUENCE, data_parallel=REPLICAS)
    chunks = schedule.placement.chunks
    own = next((algorithm for rule, (algorithm, _) in ALGORITHMS.items() if name.startswith(f"{rule} ")), None)
    wanted: dict[str, Any] = {
        "pipeline_model_parallel_size": schedule.ranks,
        "virtual_pipeline_model_parallel_size": chunks if chunks > 1 else None,
        "micro_batch_size": SIZE,
        "global_batch_size": SIZE * schedule.microbatches * REPLICAS,
        "data_parallel_size": REPLICAS,
        "seq_length": SEQUENCE,
        "num_layers": 80,
        "patch_primus_pipeline": own is not None,
        "recompute_granularity": None,
    }
    if own is not None:
        wanted |= {"pp_algorithm": own, "eval_iters": 0}
    elif chunks > 1:
        wanted |= {
            "microbatch_group_size_per_vp_stage": schedule.ranks,
            "overlap_p2p_comm": True,
            "batch_p2p_comm": False,
        }
    if layers is not None:
        stages = [["decoder"] * count for count in layers]
        stages[0].insert(0, "embedding")
        stages[-1].append("loss")
        wanted["pipeline_model_parallel_layout"] = stages
    rows = tuple(tuple(map(str, schedule[rank])) for rank in range(schedule.ranks)) if own else None
    return Case(primus_settings(schedule, training).text, wanted, schedule.ranks * REPLICAS, rows)


def test_every_experiment_is_read_as_planned(tmp_path: Path, ran: Callable[[str], None]):
    cases = {name: case(name) for name in SHAPES}
    [faults] = run_ranks(
        "tests.peers.megatron.primus", 1, Job((SOURCES[0], SOURCES[1]), str(tmp_path), cases), timeout=600
    )
    assert {name: wrong for name, wrong in faults.items() if wrong} == {}
    ran(f"Primus's reader, validate_args and schedulers on {len(cases)} experiments")


def test_every_planted_value_is_found(tmp_path: Path, ran: Callable[[str], None]):
    cases = {}
    for name in (
        "interleaved with layers",
        "zb-h1 of 4 ranks and 12 microbatches",
        "zbv of 4 ranks and 12 microbatches",
    ):
        right = case(name)
        for match in re.finditer(r"^      (\w+): (.+)$", right.text, re.MULTILINE):
            value = match[2]
            wrong = str(int(value) + 1) if value.isdigit() else {"true": "false", "false": "true"}.get(value, '"x"')
            text = f"{right.text[: match.start(2)]}{wrong}{right.text[match.end(2) :]}"
            cases[f"{name}: {match[1]}"] = Case(text, right.wanted, right.gpus, right.rows)
    [faults] = run_ranks(
        "tests.peers.megatron.primus", 1, Job((SOURCES[0], SOURCES[1]), str(tmp_path), cases), timeout=600
    )
    assert [name for name in cases if not faults[name]] == []
    ran(f"{len(cases)} wrong values planted in experiments of Primus")
