"""ELF's orders and ours under the same costs: how long each takes, and what the ranks hold."""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product

import pytest

from pipeplan.costs import Settings
from pipeplan.model import Kind, Schedule, from_ops
from pipeplan.simulation import Simulation, simulate
from pipeplan.strategies import strategy
from tests.peers.elf.test_order import theirs, with_full_backwards

TIMES = {
    "F = I = W": Settings(forward_times=1.0, backward_input_times=1.0, backward_weight_times=1.0),
    "a lighter W": Settings(forward_times=2.0, backward_input_times=3.0, backward_weight_times=1.0),
    "a heavier W": Settings(forward_times=1.0, backward_input_times=1.0, backward_weight_times=1.5),
    "a heavy F": Settings(forward_times=3.0, backward_input_times=1.0, backward_weight_times=1.0),
    "transfers": Settings(forward_times=1.0, backward_input_times=1.25, backward_weight_times=0.75, p2p_time=0.25),
}
CLOSE = 1e-9


def both(name: str, theirs_is: str, ranks: int, microbatches: int, chunks: int = 1) -> tuple[Schedule, Schedule]:
    """Our schedule and theirs, in full backwards where ours has them."""
    own = strategy(name)(strategy(name).shape(ranks, microbatches, chunks))
    rows = theirs(theirs_is, own.placement, microbatches)
    rows = with_full_backwards(rows) if own.has(Kind.B) else rows
    return own, Schedule.from_rows(own.placement, microbatches, [from_ops(row) for row in rows])


def simulated(schedule: Schedule, times: Settings) -> Simulation:
    return simulate(schedule, times.costs(schedule.placement))


def peaks(schedule: Schedule) -> list[float]:
    peak: list[float] = simulated(schedule, TIMES["F = I = W"]).memory.peak_activation.tolist()
    return peak


def compare(lengths: Counter[str], own: Simulation, found: Simulation) -> tuple[float, float]:
    """How much longer our makespan and our longest span are; the makespan is counted as shorter, equal or longer."""
    makespan = own.timeline.makespan - found.timeline.makespan
    span = float(own.timeline.spans.max() - found.timeline.spans.max())
    lengths["equal" if abs(makespan) < CLOSE else "shorter" if makespan < 0 else "longer"] += 1
    return makespan, span


def shapes(ranks: Iterable[int], least: int = 1) -> list[tuple[int, int]]:
    return [(p, m) for p in ranks for m in range(least, 3 * p + 1)]


@pytest.mark.parametrize(
    ("name", "theirs_is"),
    [
        ("zb-h1", "zbh1"),
        pytest.param("zb-h2", "zbh2", marks=pytest.mark.nightly),
    ],
)
def test_one_chunk_a_rank_is_never_longer_nor_higher(name: str, theirs_is: str, ran: Callable[[str], None]) -> None:
    lengths: Counter[str] = Counter()
    for ranks, microbatches in shapes(range(2, 9)):
        own, found = both(name, theirs_is, ranks, microbatches)
        assert max(peaks(own)) <= max(peaks(found)), (ranks, microbatches)
        for label, times in TIMES.items():
            makespan, span = compare(lengths, simulated(own, times), simulated(found, times))
            assert makespan < CLOSE, (ranks, microbatches, label)
            assert span < CLOSE, (ranks, microbatches, label)
    ran(f"{name} against {theirs_is}: makespan {dict(lengths)}, never a longer span or a higher peak")


def test_zbv_is_as_long_where_theirs_is_defined(ran: Callable[[str], None]) -> None:
    for ranks in range(2, 9):
        own, found = both("zbv", "zbv", ranks, 2 * ranks, 2)
        assert peaks(own) == peaks(found)
        for times in TIMES.values():
            assert compare(Counter(), simulated(own, times), simulated(found, times)) == pytest.approx((0.0, 0.0))
    ran("zbv against zbv at m = 2p: as long, and as high on every rank")


def test_hanayo_is_never_longer_in_no_more_memory(ran: Callable[[str], None]) -> None:
    """With fewer microbatches than ranks ELF leaves out slots, and so is longer, while its middle ranks hold less."""
    lengths: Counter[str] = Counter()
    for ranks, microbatches in shapes(range(2, 7)):
        for chunks in (2, 4, 6):
            own, found = both("hanayo", "hanayo", ranks, microbatches, chunks)
            ours, other = peaks(own), peaks(found)
            assert max(ours) <= max(other)
            for label, times in TIMES.items():
                makespan, _ = compare(lengths, simulated(own, times), simulated(found, times))
                assert makespan < CLOSE, (ranks, microbatches, chunks, label)
                if any(here > there for here, there in zip(ours, other, strict=True)):
                    assert microbatches < ranks
                    assert makespan < -CLOSE
    ran(f"hanayo against hanayo: makespan {dict(lengths)}, never a higher peak")


def test_interleaved_1f1b_is_shorter_where_theirs_runs(ran: Callable[[str], None]) -> None:
    """With whole groups and an even number of ranks; some of ELF's other shapes deadlock. Ours may hold more."""
    lengths: Counter[str] = Counter()
    higher = 0
    for ranks, chunks, groups in product((2, 4, 6, 8), (2, 3, 4), (1, 2, 3)):
        own, found = both("interleaved-1f1b", "1f1b", ranks, groups * ranks, chunks)
        higher += max(peaks(own)) > max(peaks(found))
        for label, times in TIMES.items():
            makespan, _ = compare(lengths, simulated(own, times), simulated(found, times))
            assert makespan < CLOSE, (ranks, groups * ranks, chunks, label)
    ran(f"interleaved-1f1b against 1f1b on several chunks: makespan {dict(lengths)}, a higher peak in {higher} shapes")
