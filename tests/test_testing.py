"""The checks for plugins find what is wrong with a strategy or a format."""

from dataclasses import replace

import numpy as np
import pytest

from pipeplan.formats import formats
from pipeplan.foundation.errors import FormatError, ShapeError
from pipeplan.model import Kind, Placement, Schedule, concatenate, ops, parse_schedule
from pipeplan.strategies import STRATEGIES, Formula, FromCosts, Shape
from pipeplan.testing import check_format, check_strategy

GPIPE = replace(STRATEGIES["gpipe"], name="mine", aliases=())


def without_last_backward(shape: Shape) -> Schedule:
    microbatch = np.arange(shape.microbatches)
    rows = [
        concatenate(ops(Kind.F, rank, microbatch), ops(Kind.B, rank, microbatch[:-1])) for rank in range(shape.ranks)
    ]
    return Schedule.from_rows(Placement.linear(shape.ranks), shape.microbatches, rows)


def backwards_first(shape: Shape) -> Schedule:
    microbatch = np.arange(shape.microbatches)
    rows = [concatenate(ops(Kind.B, rank, microbatch), ops(Kind.F, rank, microbatch)) for rank in range(shape.ranks)]
    return Schedule.from_rows(Placement.linear(shape.ranks), shape.microbatches, rows)


def refusing_without_a_name(shape: Shape) -> Schedule:
    raise ShapeError("no")


def refusing_everything(shape: Shape) -> Schedule:
    raise ShapeError(f"mine does not take {shape.ranks} ranks")


def dividing_by_zero(shape: Shape) -> Schedule:
    return STRATEGIES["gpipe"](replace(shape, microbatches=1 // (shape.microbatches - 1)))


def one_microbatch_too_few(shape: Shape) -> Schedule:
    return STRATEGIES["gpipe"](replace(shape, microbatches=max(shape.microbatches - 1, 1)))


def over_every_limit(shape, costs, limits):
    return STRATEGIES["gpipe"](shape)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"build": without_last_backward}, "mine on 1 rank, 1 microbatch is invalid: incomplete: rank 0: 0B0 is missing"),
        ({"build": backwards_first}, "mine on 1 rank, 1 microbatch is invalid: "),
        ({"build": refusing_without_a_name}, "refused without naming the strategy: no"),
        ({"build": refusing_everything}, "mine refuses all of 84 shapes"),
        ({"build": dividing_by_zero}, "mine on 1 rank, 1 microbatch raises ZeroDivisionError instead of ShapeError"),
        ({"build": one_microbatch_too_few}, r"mine on 1 rank, 2 microbatches has \(1, 1, 1\) ranks, microbatches and"),
        ({"build": STRATEGIES["zbv"].build}, "has .* ranks|is not on the placement linear"),
        ({"bubble": Formula("none", lambda shape: 0.0)}, "mine on 2 ranks, 1 microbatch: its idle time is 3, and"),
        ({"memory": Formula("1", lambda shape: 1.0)}, "mine on 1 rank, 2 microbatches: its peak memory is 2"),
        ({"build": lambda shape: None}, "the builder of mine returns NoneType, not a Schedule"),
        ({"paper": " "}, "mine has no paper"),
        ({"build": FromCosts(over_every_limit, "none")}, "with a memory limit of .* is invalid: memory"),
    ],
)  # fmt: skip
def test_a_fault_of_a_strategy_is_found(changes, message):
    with pytest.raises(AssertionError, match=message):
        check_strategy(replace(GPIPE, **changes))


def test_a_strategy_without_faults_passes():
    check_strategy(GPIPE)


def refusing(schedule: Schedule) -> str:
    raise FormatError("no")


def fixed(text: str):
    return lambda schedule: text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"read": None}, "does not read schedules"),
        ({"write_schedule": None}, "does not write schedules"),
        ({"write_schedule": fixed("0F0 0B0\n")}, "rows does not read 1f1b as it was written: its ranks is 1, not 4"),
        ({"read": lambda text, name, keep: parse_schedule(text).placement}, "as it was written: it reads a Placement"),
        (
            {
                "read": lambda text, name, keep: parse_schedule(
                    text.replace("F", "~").replace("B", "F").replace("~", "B")
                )
            },
            "rows does not read 1f1b as it was written: it reads 0B0 on rank 0 in the place of 0F0 on rank 0",
        ),
    ],
)
def test_a_fault_of_a_format_is_found(changes, message):
    with pytest.raises(AssertionError, match=message):
        check_format(replace(formats()["rows"], **changes))


def test_a_format_refuses_what_is_no_schedule_in_its_own_words():
    rows = formats()["rows"]
    read = rows.read
    assert read is not None

    def careless(text: str, name: str, keep: bool):
        return read(text, text[0] if not text.strip() else name, keep)

    with pytest.raises(AssertionError, match="rows raises IndexError for the text ''"):
        check_format(replace(rows, read=careless))
    with pytest.raises(FormatError):
        read("", "x", False)
    with pytest.raises(AssertionError, match="expresses none of 1f1b, gpipe"):
        check_format(replace(rows, write_schedule=refusing))
