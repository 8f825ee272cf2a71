"""Gradients of torchtitan's own Trainer by our exports, beside those of one process without a pipeline."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

import pipeplan
from pipeplan.formats import Training
from pipeplan.model import format_cells, parse_schedule
from pipeplan.passes import in_order_of_losses, insert_recompute
from tests.peers.plans import published as named
from tests.peers.torchtitan.exports import Case, exported, layout, published, words
from tests.peers.torchtitan_trainer.jobs import LAYERS, Step
from tests.processes import run_ranks

Gradients = Mapping[str, torch.Tensor | None]

WITHOUT_PIPELINE = ("--training.disable_cuda_graphs", "--training.local_batch_size")


SWAPPED = "0F1 0F0 0F3 0F2 0B1 0B0 0B3 0B2\n1F1 1F0 1B1 1B0 1F3 1F2 1B3 1B2"
SPLIT = "0F2 0F0 0F1 0I2 0I0 0W2 0I1 0W0 0W1\n1F2 1I2 1F0 1I0 1F1 1W2 1I1 1W0 1W1"
ON_A_V = "0F1 0F0 3F1 3B1 3F0 3B0 0B1 0B0\n1F1 2F1 1F0 2F0 2B1 1B1 2B0 1B0"
"""Orders of two ranks whose last stage does not take microbatch 0 first."""


@cache
def expected(sequences: int) -> Gradients:
    """Of a step on so many sequences, in one process."""
    with TemporaryDirectory() as folder:
        (trained,) = stepped(1, [Step((*WITHOUT_PIPELINE, str(sequences)), folder)])
    return trained.gradients


@dataclass(frozen=True)
class Stepped:
    """What all ranks had together: the gradients of every weight, and a row of ops a rank."""

    gradients: Gradients
    order: list[str]


def stepped(ranks: int, steps: Sequence[Step]) -> list[Stepped]:
    """What a step of the Trainer leaves, for each."""
    by_rank = run_ranks("tests.peers.torchtitan_trainer.step", ranks, list(steps), timeout=300 + 15 * len(steps))
    return [
        Stepped({name: grad for rank in every for name, grad in rank.gradients.items()}, [rank.order for rank in every])
        for every in zip(*by_rank, strict=True)
    ]


def wrong(found: Gradients, right: Gradients) -> list[str]:
    """The weights whose gradients are missing or not the right ones."""
    assert found.keys() == right.keys()
    return [name for name, grad in right.items() if not near(found[name], grad)]


def near(found: torch.Tensor | None, right: torch.Tensor | None) -> bool:
    return found is not None and right is not None and torch.allclose(found, right, atol=1e-6, rtol=1e-4)


def of_flags(case: Case, folder: Path, name: str = "plan", training: Training | None = None, config: str = "") -> Step:
    text = exported(case, folder, name, training=training or Training())
    return Step(words(text), str(folder), config or "cross_entropy")


@pytest.mark.parametrize("ranks", [2, 4])
def test_every_export_trains_right(ranks: int, tmp_path: Path, ran: Callable[[str], None]):
    draw = random.Random(ranks)
    cases = [
        *(Case(schedule, None) for schedule in published(ranks, 2 * ranks)),
        *(Case(schedule, layout(schedule.stages, LAYERS, draw), 2) for schedule in published(ranks, 5)),
        *(Case(schedule, layout(schedule.stages, LAYERS, draw)) for schedule in published(ranks, 2 * ranks, 3)),
    ]
    steps = [of_flags(case, tmp_path, f"{number}") for number, case in enumerate(cases)]
    for case, trained in zip(cases, stepped(ranks, steps), strict=True):
        assert trained.order == [",".join(format_cells(row)) for row in in_order_of_losses(case.schedule)], case
        assert not wrong(trained.gradients, expected(case.schedule.microbatches * case.microbatch_size)), case
    ran(f"its Trainer's gradients by {len(cases)} exports on {ranks} ranks")


def test_layouts_searches_and_odd_orders_train_right(tmp_path: Path, ran: Callable[[str], None]):
    found = pipeplan.search(
        ranks=2, microbatches=4, forward_times=[1, 3], memory_limit="3act", evaluations=200, seed=0
    ).schedule
    mixed = parse_schedule(SWAPPED)
    cases = {
        "nothing but the embedding on the first stage": Case(named("1f1b", 2, 4), (0, LAYERS)),
        "nothing but the head on the last stage": Case(named("zb-h1", 2, 4), (LAYERS, 0)),
        "both, on one rank": Case(named("zbv", 2, 4), (0, 5, LAYERS - 5, 0)),
        "four stages a rank": Case(named("interleaved-1f1b", 2, 4, 4), (1, 2, 1, 2, 1, 2, 1, LAYERS - 10)),
        "a search": Case(found, (5, LAYERS - 5)),
        "microbatches out of order": Case(mixed, (5, LAYERS - 5)),
        "split backwards out of order": Case(parse_schedule(SPLIT), (5, LAYERS - 5)),
        "microbatches out of order on a V": Case(parse_schedule(ON_A_V), (1, 2, 3, LAYERS - 6)),
        "full recomputation": Case(insert_recompute(named("interleaved-1f1b", 2, 4)), (1, 2, 3, LAYERS - 6)),
        "full recomputation, split backwards": Case(insert_recompute(named("zbv", 2, 4)), (1, 2, 3, LAYERS - 6)),
        "fewer microbatches than ranks": Case(named("zbv", 2, 1), (1, 2, 3, LAYERS - 6)),
    }
    steps = [of_flags(case, tmp_path, f"{number}") for number, case in enumerate(cases.values())]
    for (what, case), trained in zip(cases.items(), stepped(2, steps), strict=True):
        assert not wrong(trained.gradients, expected(case.schedule.microbatches)), what
    ran(f"its Trainer's gradients by layouts, a search and odd orders: {', '.join(cases)}")


def test_replicas_train_right(tmp_path: Path, ran: Callable[[str], None]):
    """One step alone: torchtitan keeps the meshes of the first Trainer of a process."""
    (trained,) = stepped(
        4, [of_flags(Case(named("zbv", 2, 4), (1, 4, 4, 3)), tmp_path, training=Training(data_parallel=2))]
    )
    assert not wrong(trained.gradients, expected(8))
    ran("its Trainer's gradients with two replicas of two ranks (FSDP)")


def test_python_trains_right_with_the_loss_that_it_sets(tmp_path: Path, ran: Callable[[str], None]):
    case = Case(named("zbv", 2, 4), (1, 4, 4, 3))
    step = Step((), str(tmp_path), "chunked", exported(case, tmp_path, to="torchtitan-python"))
    (trained,) = stepped(2, [step])
    assert not wrong(trained.gradients, expected(4))
    ran("its Trainer's gradients by the Python export")


def test_the_default_loss_loses_a_gradient_of_split_backwards(tmp_path: Path, ran: Callable[[str], None]):
    """Once this fails, torchtitan has mended it, and the export's warning is for releases before."""
    whole = [named("1f1b", 2, 4), named("interleaved-1f1b", 2, 4)]
    split = [named("zb-h1", 2, 4), named("zbv", 2, 4), named("dualpipev", 2, 4)]
    steps = [of_flags(Case(schedule, None), tmp_path, schedule.name, config="chunked") for schedule in (*whole, *split)]
    # Its own schedules are as wrong as ours.
    own = (
        *WITHOUT_PIPELINE,
        "4",
        "--parallelism.pipeline_parallel_degree",
        "2",
        "--parallelism.pipeline_parallel_schedule",
    )
    steps += [Step((*own, name), str(tmp_path), "chunked") for name in ("ZBVZeroBubble", "DualPipeV")]
    found = [wrong(trained.gradients, expected(4)) for trained in stepped(2, steps)]
    assert found == [[]] * len(whole) + [["norm.weight"]] * (len(split) + 2)
    ran("that its default loss in chunks loses norm.weight's gradient where backwards are split, as our export warns")


def test_a_middle_stage_without_layers_is_refused(tmp_path: Path):
    flags = list(of_flags(Case(named("zbv", 2, 4), (4, 4, 3, 1)), tmp_path).words)
    flags[flags.index("layers.8,layers.9,layers.10")] = ""
    with pytest.raises(RuntimeError, match="matched no parameters"):
        stepped(2, [Step(tuple(flags), str(tmp_path))])


def test_losses_in_another_order_are_mixed_up(tmp_path: Path):
    """Once this fails, PyTorch keeps losses by microbatch, and the export need not number microbatches anew."""
    step = of_flags(Case(named("1f1b", 2, 4), (7, 5)), tmp_path)
    (tmp_path / "plan.csv").write_text(SWAPPED.replace(" ", ",") + "\n")
    (trained,) = stepped(2, [step])
    assert wrong(trained.gradients, expected(4))
