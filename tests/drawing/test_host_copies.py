"""Copies to the host and back in pictures: in bands of their own, and in the memory."""

from pipeplan.costs import Settings
from pipeplan.drawing import LanePart, View, view_of
from pipeplan.drawing.theme import LIGHT
from pipeplan.model import KIND_WORDS, Kind, parse_schedule
from pipeplan.simulation import idle_times, memory_use, simulate

PLAN = "0F0 0F1 0OFFLOAD0 0F2 0RELOAD0 0OFFLOAD1 0B2 0RELOAD1 0B0 0B1"


def view_with(copies: float, *, reasons: bool = False) -> View:
    schedule = parse_schedule(PLAN)
    costs = Settings(offload_times=copies).costs(schedule.placement)
    timeline = simulate(schedule, costs).timeline
    idle = idle_times(timeline, costs).drawn if reasons else None
    return view_of(timeline, memory_use(schedule, costs), reasons=idle)


def test_each_direction_has_a_band_beside_compute():
    bars = view_with(0.5).bars
    assert bars.part[bars.kind == Kind.OFFLOAD].tolist() == [LanePart.TO_HOST] * 2
    assert bars.part[bars.kind == Kind.RELOAD].tolist() == [LanePart.FROM_HOST] * 2
    assert int(bars.compute.sum()) == 6
    assert {KIND_WORDS[kind] for kind in view_with(0.5).kinds} >= {"offload to the host", "reload from the host"}


def test_the_curve_falls_where_a_copy_has_ended_and_its_rank_has_come_to_it():
    curves = view_with(1.5).memory
    assert curves is not None
    steps = list(zip(curves.time.tolist(), curves.level.tolist(), strict=True))
    assert steps[:6] == [(0, 1), (1, 2), (2.5, 2), (3.5, 3), (4, 2), (6, 2)]


def test_a_gap_tells_of_the_copy():
    gaps = view_with(1.5, reasons=True).gaps
    assert gaps is not None
    assert [gaps.reasons[code] for code in gaps.reason.tolist()] == ["offload", "offload"]
    assert gaps.cause.tolist() == [2, 5]
    assert {"offload", "reload"} <= set(LIGHT.reasons)
