"""An error on one rank of a user's own loop (``failing_loop``) is raised on all ranks, at once."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from tests.extensions.training.runtime.test_pipeline import job

INPUTS = {
    "inputs": (0, "rank 0 holds the first stage and needs the inputs"),
    "targets": (1, "rank 1 holds the last stage and needs the targets"),
    "shapes": (0, "this batch has other shapes or types than before ((1, 12) of float32 after (2, 12) of float32)"),
    "keyword": (1, "this batch comes with the keywords mask and the ones before it with none"),
    "passes": (None, "some ranks call step() and others eval(): all ranks must call the same"),
    "no gradients": (1, "step() trains and needs gradients: call it outside torch.no_grad()"),
    "loss": (1, "the loss returned a tensor of shape (2, 8): it must return a scalar tensor"),
    "loss of an evaluation": (1, "the loss returned a tensor of shape (2, 8)"),
    "accepted": (None, "nothing was raised"),
    "evaluated": (None, "nothing was raised"),
}
"""The rank at fault, and its error."""


@pytest.mark.slow
def test_what_one_rank_passes_wrongly_is_raised_on_all(tmp_path: Path) -> None:
    for rank, answer in enumerate(job(tmp_path, 2, "inputs_that_differ", of="failing_loop")):
        assert answer["inputs_that_differ"].keys() == INPUTS.keys()
        for case, (culprit, message) in INPUTS.items():
            result = answer["inputs_that_differ"][case]
            assert message in result, case
            assert (f"on rank {culprit}" in result) == (culprit is not None and rank != culprit), case


@pytest.mark.slow
def test_a_module_that_raises_is_named_on_all_ranks_and_the_next_step_succeeds(tmp_path: Path) -> None:
    for rank, answer in enumerate(job(tmp_path, 2, "modules_that_raise", of="failing_loop")):
        for case, (error, notes, soon, same) in answer["modules_that_raise"].items():
            culprit, call = case[1], case[3]
            assert "worn out" in error, case
            assert (soon, same) == (True, True), case
            where = notes[-1] if rank == culprit else error
            assert f"on rank {culprit}, " in where, case
            assert (", computing" in where) == (call > 1), case
