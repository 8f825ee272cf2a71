"""Users' own training loops (``own_loop``), several to a job: starting one takes most of its time."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch import nn

from pipeplan.extensions.training.runtime.microbatches import joined, shapes, split
from pipeplan.extensions.training.runtime.schedule_sources import forwards_alone
from pipeplan.foundation.errors import InputError
from pipeplan.model import Kind, Placement
from pipeplan.runtime import Pipeline
from pipeplan.strategies import strategy
from tests.processes import run_ranks

CPU = torch.device("cpu")

EPSILON = torch.finfo(torch.float32).eps
"""The distance from 1 to the next float32: what a rounding moves a number by, relative to it."""

EXACT = (0.0, 0.0, 0.0)
"""The differences of gradients, losses and weights where terms are added in the same order."""


def job(folder: Path, processes: int, *scenarios: str, of: str = "own_loop") -> list[dict[str, Any]]:
    """Every rank's answers to scenarios of a module here."""
    return run_ranks(f"tests.extensions.training.runtime.{of}", processes, (folder, scenarios), timeout=600)


@pytest.mark.needs("search")
def test_gradients_losses_and_weights_are_those_of_a_single_process(tmp_path: Path) -> None:
    """To the last bit, under every strategy and source, precision, frozen and bare stages, lengths; and after clipping."""
    trained = ("strategies", "sources", "mixed_precision", "checkpointed", "compiled")
    for answers in job(tmp_path, 2, *trained, "without_parameters", "frozen", "lengths", "clipped"):
        # Each rank adds the squares of its own gradients, then the ranks' sums are added: another order than over all at
        # once, and how vectors add depends on the processor. A norm that is off by a rounding moves all that is clipped.
        clipped = answers.pop("clipped")
        assert max(clipped[2.0]) <= 8 * EPSILON
        # A maximum is the same in any order.
        assert clipped[float("inf")] == EXACT
        for name, result in answers.items():
            assert result == dict.fromkeys(result, EXACT), name


@pytest.mark.slow
def test_what_a_training_does_beside_steps(tmp_path: Path) -> None:
    answers = job(tmp_path, 2, "resumed", "evaluated", "recorded", "scaled", "tuples")
    assert answers[0]["recorded"][:2] == answers[1]["recorded"][:2]
    for rank, answer in enumerate(answers):
        expected, again, (before, after) = answer["resumed"]
        assert again == {"zbv": expected, "dualpipev": expected}
        assert after == before
        # One part of a stage stood in evaluation mode, and does again; buffers have seen the step's microbatches alone.
        assert answer["evaluated"] == dict.fromkeys(answer["evaluated"], (1, [4, 4], True))
        starts, seconds, (early, twice, unknown) = answer["recorded"]
        assert min(starts) == 0
        assert len(seconds) == 2
        assert "no step was recorded" in early
        assert "recording already" in twice
        assert "'.docx'" in unknown
        assert answer["scaled"] == ((0.0, 0.0), [False, True, False], 4.0)
        for name, (apart, losses) in answer["tuples"].items():
            assert apart < 1e-6
            holds_last = (name == "1f1b") == (rank == 1)
            assert losses == ([4] if holds_last else None)


@pytest.mark.slow
def test_data_parallel_pipelines(tmp_path: Path) -> None:
    for answer in job(tmp_path, 4, "replicated"):
        assert len(answer["replicated"]) == 6
        for way, ((gradients, losses, weights), key) in answer["replicated"].items():
            assert (gradients < 1e-5, losses < 1e-5, weights < 1e-4) == (True, True, True), way
            assert key.startswith("stages.")
            assert ".module." not in key


CONSTRUCTION = {
    "on no rank": "stage 1 is passed on no rank, but the schedule has it on rank 1",
    "on two ranks": "stage 0 is passed on rank 0 and rank 1, but the schedule has it on rank 0",
    "on the wrong rank": "stage 0 is passed on rank 1, but the schedule has it on rank 0",
    "no such stage": "rank 0 passes a module for stage 7, but the schedule has the stages 0 to 1",
    "too many": "holds 1 stage(s) of 1f1b",
    "twice": "passes the same module for two stages",
    "no module": "a stage must be a torch.nn.Module, not a int",
    "ranks": "1f1b is made for 4 ranks but the group has 2 process(es)",
    "unlike": "ranks 0 and 1 have different schedules",
    "microbatches missing": "1f1b needs its microbatches",
    "bidirectional": "cannot run dualpipe: it supports one rank per stage",
    "loss": "rank 1 holds the last stage and needs a loss function",
    "part in DDP": "wrap the whole stage instead",
    "layers under FSDP": "call fully_shard on it, too",
    "mesh": "pass the pipeline's submesh, such as mesh['pp']",
    "mesh, pp": "nothing was refused",
    "group": "is not in the pipeline's process group",
}

STEPS = {
    "vector": "the loss returned a tensor of shape (2, 4): it must return a scalar tensor",
    "number": "the loss returned a float",
    "detached": "the loss does not depend on any parameter",
    "division": "the inputs hold 7 samples, which do not divide into 4 microbatches of one size: pass a multiple of 4",
    "no_grad": "call it outside torch.no_grad(), or call eval()",
    "state": "the checkpoint has no state of stage 0, which rank 0 holds",
}


@pytest.mark.slow
def test_what_is_refused_in_one_sentence_on_all_ranks(tmp_path: Path) -> None:
    for answer in job(tmp_path, 2, "refusals", "refused_steps"):
        assert answer["refusals"].keys() == CONSTRUCTION.keys()
        for case, message in CONSTRUCTION.items():
            assert message in answer["refusals"][case], case
        for case, message in STEPS.items():
            assert message in answer["refused_steps"][case], case
        assert answer["refused_steps"]["forgotten"] == [4]
        assert answer["refused_steps"]["note"] == "on rank 0, step 1, op 1 (0F0), computing"


def test_before_the_process_group() -> None:
    with pytest.raises(InputError, match=r"call torch\.distributed\.init_process_group\(\) before making a Pipeline"):
        Pipeline("1f1b", [nn.Linear(2, 2)], nn.functional.mse_loss, microbatches=4)


def test_batches_are_cut_and_joined_again() -> None:
    x, y = torch.arange(12.0).reshape(6, 2), torch.arange(6)
    parts = split((x, {"y": y, "scale": 3.0}), 3, what="the inputs", device=CPU)
    for count in (2, 4):
        with pytest.raises(InputError, match=f"the inputs are a list of {count}, but the schedule has 3 microbatches"):
            split([x] * count, 3, what="the inputs", device=CPU)
    assert [part[1]["y"].tolist() for part in parts] == [[0, 1], [2, 3], [4, 5]]
    assert parts[1][1]["scale"] == 3.0
    assert shapes(parts[0]) == (((2, 2), torch.float32), (("scale", ()), ("y", ((2,), torch.int64))))
    back = joined(parts)
    assert torch.equal(back[0], x)
    assert torch.equal(back[1]["y"], y)
    assert back[1]["scale"] == [3.0, 3.0, 3.0]
    assert joined([torch.tensor(1.0), torch.tensor(2.0)]) == [torch.tensor(1.0), torch.tensor(2.0)]


@pytest.mark.parametrize("name", ["1f1b", "zbv", "interleaved-1f1b-overlap"])
def test_an_evaluation_runs_the_forwards_in_their_order(name: str) -> None:
    ours = strategy(name)
    whole = ours(ours.shape(2, 4))
    alone = forwards_alone(whole)
    assert alone.kinds <= {Kind.F, Kind.SEND_F, Kind.RECV_F, Kind.UNSHARD, Kind.RESHARD}
    for rank in range(2):
        order = [(op.stage, op.microbatch) for op in whole[rank] if op.kind == Kind.F]
        assert [(op.stage, op.microbatch) for op in alone[rank] if op.kind == Kind.F] == order
        assert all(op.group < 0 for op in alone[rank])
    assert alone.placement.rank_of == (Placement.v(2) if name == "zbv" else whole.placement).rank_of
