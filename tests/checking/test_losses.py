"""PyTorch takes the k-th loss for microbatch k: the last stage must take microbatches in the order of their numbers."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.checking.torch_rules import check_losses
from pipeplan.model import Schedule, format_schedule, order_of_losses, parse_schedule
from pipeplan.passes import in_order_of_losses
from pipeplan.strategies import strategy
from tests.passes.plans import PLANS

SWAPPED = "0F0 0F1 0B0 0B1\n1F1 1F0 1B1 1B0"


def test_losses_out_of_order_are_wrong_in_pytorch_alone():
    report = check(parse_schedule(SWAPPED))
    assert (report.valid, [note.rule for note in report.notes]) == (True, ["losses"])
    (problem,) = check(parse_schedule(SWAPPED), pytorch=True).problems
    assert (problem.rule, problem.where) == ("losses", "rank 1, op 0 (1F1)")


def test_two_copies_of_a_model_have_losses_of_their_own():
    dualpipe = strategy("dualpipe")
    assert not list(check_losses(dualpipe(dualpipe.shape(2, 4))))


def test_microbatches_are_numbered_as_their_losses_come():
    assert format_schedule(in_order_of_losses(parse_schedule(SWAPPED))) == "0F1 0F0 0B1 0B0\n1F0 1F1 1B0 1B1"


@settings(max_examples=40, deadline=None)
@given(PLANS, st.randoms(use_true_random=False))
def test_any_numbering_is_put_in_order(plan: Schedule, random):
    """A schedule under other numbers is the same one once its numbers follow its losses."""
    shuffled = list(range(plan.microbatches))
    random.shuffle(shuffled)
    numbers = np.array(shuffled, np.int32)[plan.columns.microbatch]
    other = replace(plan, columns=replace(plan.columns, microbatch=numbers))
    if plan.placement.copies > 1 or plan.slices > 1:
        return
    ordered = in_order_of_losses(other)
    assert order_of_losses(ordered).tolist() == list(range(plan.microbatches))
    assert ordered == in_order_of_losses(plan)
    assert check(ordered).valid
    assert not list(check_losses(ordered))
