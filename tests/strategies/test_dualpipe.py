import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.costs import Settings
from pipeplan.errors import ShapeError
from pipeplan.model import Kind, Op, Schedule, format_schedule
from pipeplan.simulation import simulate
from pipeplan.strategies import Strategy
from pipeplan.strategies.dualpipe import FAMILY, build_dualpipe, build_dualpipev, dualpipe, dualpipev
from tests.conformance import conformance
from tests.strategies.picture import picture
from tests.strategies.promises import assert_keeps_promises
from tests.strategies.tables import documented_table

VISUALIZER_NAMES = {"dualpipe": dualpipe, "dualpipe_v": dualpipev}

DUALPIPE_TABLE = """\
rank 0 | 0F0  0F1  0F2  3F3  3I3  3W3  3F4  3B4  --   .    .    (3F5 0B0) --   3B5  --   0I1  0W1  0I2  0W2
rank 1 | .    1F0  2F3  1F1  2F4  1F2  2B3  --   (2F5 1B0) --   2B4  --   1B1  --   .    2I5  1I2  2W5  1W2
rank 2 | .    1F3  2F0  1F4  2F1  1F5  2B0  --   (2F2 1B3) --   2B1  --   1B4  --   .    2I2  1I5  2W2  1W5
rank 3 | 0F3  0F4  0F5  3F0  3I0  3W0  3F1  3B1  --   .    .    (3F2 0B3) --   3B2  --   0I4  0W4  0I5  0W5"""

DUALPIPEV_TABLE = """\
rank 0 | 0F0  0F1  0F2  3F0  3I0  3W0  3F1  3B1  --   .    .    (3F2 0B0) --   3B2  --   0I1  0W1  0I2  0W2
rank 1 | .    1F0  2F0  1F1  2F1  1F2  2B0  --   (2F2 1B0) --   2B1  --   1B1  --   .    2I2  1I2  2W2  1W2"""

DUALPIPEV_4 = """\
0F0 0F1 0F2 3F0 3I0 3W0 3F1 (0F3;3B1)OVERLAP_F_B (3F2;0B0)OVERLAP_F_B 3B2 (3F3;0B1)OVERLAP_F_B 3B3 0I2 0W2 0I3 0W3
1F0 2F0 1F1 2F1 1F2 2B0 (2F2;1B0)OVERLAP_F_B (1F3;2B1)OVERLAP_F_B (2F3;1B1)OVERLAP_F_B 2B2 1B2 2I3 1I3 2W3 1W3"""


def build(strategy: Strategy, ranks: int, microbatches: int) -> Schedule:
    return strategy(strategy.shape(ranks, microbatches))


def makespan(schedule: Schedule) -> float:
    return simulate(schedule, Settings(times_per="stage").costs(schedule.placement)).timeline.makespan


@pytest.mark.parametrize(
    ("strategy", "builder", "ranks", "microbatches", "table"),
    [(dualpipe, build_dualpipe, 4, 6, DUALPIPE_TABLE), (dualpipev, build_dualpipev, 2, 3, DUALPIPEV_TABLE)],
)
def test_timing_table(strategy, builder, ranks, microbatches, table):
    schedule = build(strategy, ranks, microbatches)
    costs = Settings(times_per="stage").costs(schedule.placement)
    assert picture(simulate(schedule, costs).timeline) == table
    assert documented_table(builder) == table


def test_dualpipev_order():
    assert format_schedule(build(dualpipev, 2, 4)) == DUALPIPEV_4


def test_dualpipev_is_pytorchs():
    orders = conformance("torch_orders.json")["orders"]
    keys = [key for key in orders if key.startswith("DualPipeV|")]
    assert keys
    for key in keys:
        ranks, microbatches = (int(part[2:]) for part in key.split("|")[1:3])
        assert format_schedule(build(dualpipev, ranks, microbatches)).splitlines() == orders[key], key


def visualizer_cells(row: tuple[Op, ...]) -> str:
    """A row in the visualizer's words: ``D7@2`` is the input backward of microbatch 7 on stage 2."""
    cells: list[str] = []
    for op in row:
        cell = f"{'D' if op.kind == Kind.I else op.kind.name}{op.microbatch}@{op.stage}"
        if op.group >= 0 and op.kind != Kind.F:
            cell = f"{cells.pop()}|{cell})"
        cells.append(f"({cell}" if op.group >= 0 and op.kind == Kind.F else cell)
    return " ".join(cells)


def test_visualizers_orders():
    rows = [row for row in conformance("visualizer_totals.json")["orders"] if row["strategy"] in VISUALIZER_NAMES]
    assert rows
    for row in rows:
        schedule = build(VISUALIZER_NAMES[row["strategy"]], row["devices"], row["batches"])
        assert [visualizer_cells(rank) for rank in schedule] == list(row["order"].values()), row["strategy"]
        assert makespan(schedule) == row["total"]


def test_visualizers_totals():
    rows = [row for row in conformance("visualizer_totals.json")["totals"] if row["strategy"] in VISUALIZER_NAMES]
    assert rows
    for row in rows:
        if "error" in row:
            with pytest.raises(ShapeError, match=r"at least .* microbatches, not 8"):
                build(VISUALIZER_NAMES[row["strategy"]], row["devices"], row["batches"])
        else:
            schedule = build(VISUALIZER_NAMES[row["strategy"]], row["devices"], row["batches"])
            assert makespan(schedule) == row["total"]


@pytest.mark.parametrize(("ranks", "microbatches"), [(2, 4), (4, 8), (8, 32)])
def test_dualpipe_total(ranks, microbatches):
    assert makespan(build(dualpipe, ranks, microbatches)) == 3 * microbatches + 2 * (ranks // 2 - 1)


@pytest.mark.parametrize(("strategy", "depth"), [(dualpipe, 4), (dualpipev, 8)])
def test_published_bubble_with_a_cheaper_overlap(strategy, depth):
    schedule = build(strategy, 8, 32)
    times = Settings(
        times_per="stage", forward_times=4.0, backward_times=7.0, backward_weight_times=3.0, overlap_times=9.0
    )
    idle = simulate(schedule, times.costs(schedule.placement)).timeline.idle
    assert idle.max() == (depth - 1) * (9 + 7 - 3 * 3)


@settings(max_examples=40, deadline=None)
@given(half=st.integers(1, 6), more=st.integers(0, 12))
def test_dualpipe_keeps_its_promises(half, more):
    shape = dualpipe.shape(2 * half, 4 * half - 2 + 2 * more)
    assert_keeps_promises(dualpipe, shape, exactly=True)


@settings(max_examples=40, deadline=None)
@given(ranks=st.integers(1, 8), more=st.integers(0, 12))
def test_dualpipev_keeps_its_promises(ranks, more):
    shape = dualpipev.shape(ranks, 2 * ranks - 1 + more)
    assert_keeps_promises(dualpipev, shape, exactly=True)


@pytest.mark.parametrize(
    ("strategy", "ranks", "microbatches", "rule"),
    [
        (dualpipe, 5, 20, "an even number of ranks, not 5"),
        (dualpipe, 4, 9, "even number of microbatches, half for each direction, not 9"),
        (dualpipe, 4, 4, "on 4 ranks needs at least 6 microbatches, not 4"),
        (dualpipev, 4, 6, "on 4 ranks needs at least 7 microbatches, not 6"),
    ],
)
def test_refused_shapes(strategy, ranks, microbatches, rule):
    with pytest.raises(ShapeError, match=rule):
        build(strategy, ranks, microbatches)


def test_family():
    assert [strategy.name for strategy in FAMILY] == ["dualpipe", "dualpipev"]
