"""Op by op: our orders, and what Megatron-core's own schedule functions run for the flags that we write."""

from collections.abc import Callable, Iterable
from itertools import product

import pytest
from megatron.core import parallel_state
from megatron.core.pipeline_parallel.schedules import get_pp_rank_microbatches, get_schedule_table
from megatron.core.transformer.cuda_graphs import convert_schedule_table_to_order

from pipeplan.formats import Training
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import Kind, Schedule
from pipeplan.strategies import STRATEGIES
from pipeplan.trainers.megatron import MegatronOrder, megatron_settings, pipeline_flags
from tests.peers.megatron.flags import configured
from tests.peers.megatron.recording import one_rank

Ran = Callable[[str], None]
Shape = tuple[int, int, int, int]
"""Ranks, microbatches, chunks a rank, microbatches in a group."""

LINES: list[Shape] = [(p, m, 1, 0) for p, m in product(range(1, 9), range(1, 13))]
LOOPS: list[Shape] = [
    (p, m, v, g) for p in (2, 3, 4, 5) for m in range(1, 4 * p) for v in (2, 3) for g in range(1, m + 2)
]
DEEP: list[Shape] = [(p, m, v, g) for p, v in ((2, 5), (4, 4), (8, 2)) for m in (2 * p, 3 * p) for g in (p, 2 * p)]


def accepted(shapes: Iterable[Shape]) -> list[Shape]:
    """Groups of at least the ranks, the last one too: Megatron's rule, in words of its own."""
    return [(p, m, v, g) for p, m, v, g in shapes if p <= g <= m and (m % g == 0 or m % g >= p)]


def named(name: str, shape: Shape) -> Schedule:
    strategy = STRATEGIES[name]
    ranks, microbatches, chunks, group = shape
    return strategy(strategy.shape(ranks, microbatches, chunks, group_size=group or None))


def slots(schedule: Schedule, rank: int) -> list[tuple[str, ...]]:
    """A rank's ops one after the other, overlapped ones together."""
    found: list[tuple[str, ...]] = []
    joined = schedule.joined[schedule.offsets[rank] : schedule.offsets[rank + 1]]
    for op, with_last in zip(schedule[rank], joined, strict=True):
        found[-1:] = [(*found[-1], str(op))] if with_last else [*found[-1:], (str(op),)]
    return found


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("1f1b", LINES),
        ("interleaved-1f1b", accepted(LOOPS + DEEP)),
        ("interleaved-1f1b-overlap", accepted(LOOPS + DEEP)),
    ],
)
def test_every_shape_runs_in_our_order(name: str, shapes: list[Shape], ran: Ran):
    schedules = {shape: named(name, shape) for shape in shapes}
    asked = {shape: configured(megatron_settings(each, Training()).text) for shape, each in schedules.items()}
    different = []
    for ranks in sorted({shape[0] for shape in shapes}):
        for rank in range(ranks):
            with one_rank(rank, ranks) as order_of:
                of_these = [shape for shape in shapes if shape[0] == ranks]
                different += [
                    (shape, rank) for shape in of_these if order_of(asked[shape]) != slots(schedules[shape], rank)
                ]
    assert different == []
    ran(f"{name}: the order of {len(shapes)} shapes")


def test_megatron_refuses_the_groups_that_we_refuse(ran: Ran):
    text = megatron_settings(named("interleaved-1f1b", (2, 2, 2, 2)), Training()).text
    different = []
    for ranks in (2, 3, 4):
        with one_rank(0, ranks) as order_of:
            for shape in (each for each in LOOPS if each[0] == ranks and each[2] == 2):
                _, microbatches, _, group = shape
                asked = configured(
                    text.replace("-parallel-size 2", f"-parallel-size {ranks}")
                    .replace("-batch-size 2", f"-batch-size {microbatches}")
                    .replace("-pipeline-stage 2", f"-pipeline-stage {group}")
                )
                try:
                    order_of(asked)
                except (ValueError, RuntimeError):
                    refused = True
                else:
                    refused = False
                different += [shape] if refused != refuses(shape) else []
    assert different == []
    ran("which groups are refused")


def refuses(shape: Shape) -> bool:
    ranks, microbatches, chunks, group = shape
    try:
        schedule = named("interleaved-1f1b", (ranks, microbatches, chunks, microbatches))
        pipeline_flags(schedule, MegatronOrder(group_size=group), Training())
    except ShapeError:
        return True
    return False


def test_the_order_of_its_cuda_graphs_is_ours_too(ran: Ran):
    """A second statement of the order in Megatron: chunks from 1, backwards negative."""
    different, shapes = [], accepted(LOOPS)
    schedules = {shape: named("interleaved-1f1b", shape) for shape in shapes}
    for ranks in (2, 3, 4, 5):
        for rank in range(ranks):
            with one_rank(rank, ranks):
                for shape in (each for each in shapes if each[0] == ranks):
                    _, microbatches, chunks, group = shape
                    parallel_state.set_virtual_pipeline_model_parallel_world_size(chunks)
                    warm_up = get_pp_rank_microbatches(microbatches, chunks, group)[2]
                    table = get_schedule_table(microbatches, chunks, group)
                    theirs = convert_schedule_table_to_order(warm_up, chunks, table)
                    row = schedules[shape].row(rank)
                    chunk = row.stage // ranks + 1
                    ours = [int(c) if kind == Kind.F else -int(c) for c, kind in zip(chunk, row.kind, strict=True)]
                    different += [(shape, rank)] if theirs != ours else []
    assert different == []
    ran(f"its CUDA graphs' order of {len(shapes)} shapes")
