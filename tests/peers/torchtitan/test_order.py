"""The order of ops that torchtitan's pipeline holds, by our CSV and by its own schedules' names."""

import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from torchtitan.config import ParallelismConfig, TrainingConfig

import pipeplan
from pipeplan.checking import check
from pipeplan.foundation.errors import ShapeError
from pipeplan.passes import in_order_of_losses
from pipeplan.strategies import STRATEGIES
from pipeplan.trainers.torchtitan_layout import module_names
from tests.extensions.training.runtime.torch_schedules import from_torch
from tests.peers.stand_ins import ranks_of
from tests.peers.torchtitan.exports import Case, exported, layout, published
from tests.peers.torchtitan.pipeline import Built, built

LAYERS = 12


def pipeline_of(case: Case, folder: Path) -> Built:
    """By the tables of the Python export; that they are those of the flags is told apart."""
    tables: dict[str, Any] = {}
    exec(exported(case, folder, to="torchtitan-python"), tables)
    return built(ParallelismConfig(**tables["PARALLELISM"]), TrainingConfig(**tables["TRAINING"]), LAYERS)


@pytest.mark.parametrize("ranks", [2, 3, pytest.param(4, marks=pytest.mark.nightly)])
def test_our_order_is_the_one_that_it_holds(ranks: int, tmp_path: Path, ran: Callable[[str], None]):
    draw = random.Random(ranks)
    count = 0
    with ranks_of(ranks):
        for microbatches, chunks in product((1, 2 * ranks - 1, 2 * ranks, 3 * ranks + 1), (None, 3)):
            for schedule in published(ranks, microbatches, chunks):
                pipeline = pipeline_of(
                    Case(schedule, layout(schedule.stages, LAYERS, draw), draw.randint(1, 2)), tmp_path
                )
                assert from_torch(pipeline.schedule) == schedule
                assert check(from_torch(pipeline.schedule, communication=True)).valid
                count += 1
    ran(f"the order of {count} exports on {ranks} ranks in the schedule that pipeline_llm builds")


def test_every_stage_has_its_modules(tmp_path: Path):
    draw = random.Random(0)
    schedules = [STRATEGIES[name](STRATEGIES[name].shape(3, 6, chunks)) for name, chunks in CHUNKS]
    cases = [Case(schedule, layout(schedule.stages, LAYERS, draw)) for schedule in schedules]
    found: list[dict[int, list[str]]] = [{} for _ in cases]
    for rank in range(3):
        with ranks_of(3, rank):
            for case, modules in zip(cases, found, strict=True):
                here = pipeline_of(case, tmp_path).stages
                assert {case.schedule.placement.rank_of[0][stage] for stage in here} == {rank}
                modules.update(here)
    for case, modules in zip(cases, found, strict=True):
        assert case.layers is not None
        assert [sorted(modules[stage]) for stage in sorted(modules)] == [
            sorted(part) for part in module_names(case.layers)
        ]


CHUNKS = (("1f1b", 1), ("interleaved-1f1b", 2), ("interleaved-1f1b", 4), ("zbv", 2))
"""A schedule of each placement."""


def test_without_layers_it_makes_our_stages(tmp_path: Path):
    with ranks_of(4):
        for schedule in published(4, 8):
            assert from_torch(pipeline_of(Case(schedule, None), tmp_path).schedule) == schedule


def test_three_stages_a_rank_are_for_layers_to_tell(tmp_path: Path):
    schedule = STRATEGIES["interleaved-1f1b"](STRATEGIES["interleaved-1f1b"].shape(2, 4, 3))
    tables: dict[str, Any] = {}
    exec(exported(Case(schedule, layout(6, LAYERS, random.Random(0))), tmp_path, to="torchtitan-python"), tables)
    del tables["PARALLELISM"]["module_fqns_per_model_part"]
    with ranks_of(2), pytest.raises(KeyError):
        built(ParallelismConfig(**tables["PARALLELISM"]), TrainingConfig(**tables["TRAINING"]), LAYERS)
    with pytest.raises(ShapeError, match="builds 2 stages per rank by default"):
        exported(Case(schedule, None), tmp_path)


def test_a_found_schedule(tmp_path: Path, ran: Callable[[str], None]):
    found = pipeplan.search(
        ranks=3,
        microbatches=6,
        forward_times=[1, 2, 4],
        placement="linear",
        memory_limit="3act",
        evaluations=300,
        seed=0,
    ).schedule
    with ranks_of(3):
        pipeline = pipeline_of(Case(found, (1, 2, 9)), tmp_path)
        assert from_torch(pipeline.schedule) == in_order_of_losses(found)
    ran("the order of a schedule found by a search")


OWN = {
    "GPipe": ("gpipe", (1,)),
    "1F1B": ("1f1b", (1,)),
    "LoopedBFS": ("looped-bfs", (2, 3)),
    "Interleaved1F1B": ("interleaved-1f1b", (2, 3)),
    "InterleavedZeroBubble": ("interleaved-zb", (2, 3)),
    "ZBVZeroBubble": ("zbv", (2,)),
    "DualPipeV": ("dualpipev", (2,)),
}
"""The schedules that torchtitan has by name, with ours and their chunks a rank."""


@pytest.mark.parametrize("name", OWN)
def test_its_own_schedules_are_ours(name: str, ran: Callable[[str], None]):
    ours, all_chunks = OWN[name]
    count = 0
    for ranks in (2, 4):
        with ranks_of(ranks):
            for microbatches in (2 * ranks, 3 * ranks, 4 * ranks):
                for chunks in all_chunks:
                    layers = (1,) * ranks * chunks
                    parallelism = ParallelismConfig(
                        pipeline_parallel_degree=ranks,
                        pipeline_parallel_schedule=name,
                        module_fqns_per_model_part=module_names(layers),
                    )
                    theirs = built(parallelism, TrainingConfig(local_batch_size=microbatches), len(layers)).schedule
                    strategy = STRATEGIES[ours]
                    assert from_torch(theirs) == strategy(strategy.shape(ranks, microbatches, chunks))
                    count += 1
    ran(f"its {name} in {count} shapes")
