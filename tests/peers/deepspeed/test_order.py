"""DeepSpeed's schedules, executed beside ours, and the instructions that our example gives its engine."""

from collections.abc import Callable, Iterable

import pytest
from deepspeed.runtime.pipe import schedule as deepspeed_schedule

from examples.deepspeed_schedule import PlannedSchedule
from pipeplan.model import Kind, Op, Schedule, parse_schedule
from pipeplan.strategies import Shape, strategy

SHAPES = [(ranks, microbatches) for ranks in range(2, 11) for microbatches in range(1, 2 * ranks + 4)]

Instructions = list[tuple[str, int | None]]


def all_of(schedule: Iterable[list[deepspeed_schedule.PipeInstruction]]) -> list[deepspeed_schedule.PipeInstruction]:
    return [instruction for step in schedule for instruction in step]


def words(instructions: list[deepspeed_schedule.PipeInstruction], buffers: int) -> Instructions:
    """Names with buffers; a schedule of fewer buffers than microbatches takes them in turn."""
    held = [getattr(instruction, "buffer_id", None) for instruction in instructions]
    return [
        (instruction.name, None if buffer is None else buffer % buffers)
        for instruction, buffer in zip(instructions, held, strict=True)
    ]


def test_train_schedule_is_1f1b(ran: Callable[[str], None]) -> None:
    """Its forwards and backwards are ours; its sends, receives and loads are those that the example places."""
    for ranks, microbatches in SHAPES:
        ours = strategy("1f1b")(Shape(ranks, microbatches))
        for rank in range(ranks):
            theirs = deepspeed_schedule.TrainSchedule(microbatches, ranks, rank)
            buffers = theirs.num_pipe_buffers()
            planned = words(all_of(PlannedSchedule(ours, rank)), buffers)
            assert words(all_of(theirs), buffers) == planned, (ranks, microbatches, rank)
            computes = [name[0] for name, _ in planned if name in ("ForwardPass", "BackwardPass")]
            assert computes == [op.kind.name for op in ours[rank]]
    ran(f"TrainSchedule against 1f1b, instruction by instruction with transfers: {len(SHAPES)} shapes")


def dualpipev_order(ranks: int, microbatches: int, rank: int) -> list[Op]:
    """What DeepSpeed's DualPipeV computes on a rank: a buffer is a phase's microbatch, the second phase comes back."""
    found = []
    for instruction in all_of(deepspeed_schedule.DualPipeVSchedule(microbatches, ranks, rank)):
        if instruction.name in ("ForwardPass", "BackwardPass"):
            phase, microbatch = divmod(instruction.buffer_id, microbatches)
            stage = 2 * ranks - 1 - rank if phase else rank
            found.append(Op(Kind[instruction.name[0]], stage, microbatch))
    return found


def in_full(row: tuple[Op, ...]) -> list[Op]:
    """A row whose backwards are all full, at the place of their input halves, and overlapped with nothing."""
    return [
        Op(Kind.B if op.kind is Kind.I else op.kind, op.stage, op.microbatch) for op in row if op.kind is not Kind.W
    ]


def test_dualpipev_is_ours_with_full_backwards(ran: Callable[[str], None]) -> None:
    """DeepSpeed's keeps the weight halves in the backwards; it asks for one microbatch more than the order needs."""
    shapes = [(ranks, microbatches) for ranks in range(1, 9) for microbatches in range(2 * ranks, 2 * ranks + 9)]
    for ranks, microbatches in shapes:
        ours = strategy("dualpipev")(Shape(ranks, microbatches, chunks=2))
        found = [dualpipev_order(ranks, microbatches, rank) for rank in range(ranks)]
        assert found == [in_full(row) for row in ours], (ranks, microbatches)
    ran(f"DualPipeVSchedule against dualpipev, its backwards in full: {len(shapes)} shapes")


@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        (strategy("zbv")(Shape(2, 4, chunks=2)), "one stage a rank, in order; this schedule's placement is v"),
        (strategy("seq1f1b")(Shape(2, 4, slices=2)), "whole sequences; this schedule slices them in 2"),
        (strategy("zb-h1")(Shape(2, 4)), "forwards and full backwards; this schedule has F, I, W"),
        (strategy("gpipe")(Shape(2, 2)), "each forward there needs its backward right behind"),
        (parse_schedule("0F1 0F0 0B1 0B0\n1F1 1B1 1F0 1B0"), r"rank 0 forwards them as \[1, 0\]"),
    ],
)
def test_what_its_engine_cannot_run(schedule: Schedule, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        PlannedSchedule(schedule, 0)
