"""Collectives of sharded stages by the rule of the settings: from Python, as JSON, in files and in searches."""

from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

import pipeplan
from pipeplan.model import SEND_KINDS, Kind
from pipeplan.passes import without_collectives, without_communication

COSTS: dict[str, Any] = {
    "ranks": 2,
    "microbatches": 4,
    "chunks": 3,
    "times_per": "stage",
    "unshard_times": 1.5,
    "reduce_times": 2,
    "activation_bytes": 1,
    "parameter_bytes": 6,
}


def simulated(**options: Any) -> pipeplan.Result:
    return pipeplan.simulate("interleaved-1f1b", **COSTS | options)


def test_a_rule_places_collectives(capsys: pytest.CaptureFixture[str]) -> None:
    default, free = simulated(), simulated(sharding="none")
    assert default.to_dict()["sharding"] == "pytorch"
    assert "sharding" not in free.to_dict()
    assert not free.schedule.has(Kind.UNSHARD)
    assert default.schedule == simulated(sharding="pytorch", max_active_stages=3).schedule
    assert default.schedule != simulated(unshard_lookahead="1").schedule == simulated(unshard_lookahead="1,1").schedule
    for numbers, text in ((1, "1"), ([1, 2], "1,2")):
        assert simulated(unshard_lookahead=numbers).schedule == simulated(unshard_lookahead=text).schedule
    simulated(max_active_stages=2, unshard_lookahead="auto").print()
    assert "by PyTorch's rule (2 active stages, lookahead auto)" in capsys.readouterr().out
    results = {rule: simulated(sharding=rule, memory_limit=6.5) for rule in ("pytorch", "megatron")}
    assert [result.sharding for result in results.values()] == ["pytorch", "megatron"]
    assert [result.fits for result in results.values()] == [False, False]
    tight = simulated(max_active_stages=1, memory_limit=6.5)
    assert tight.fits
    assert free.makespan < tight.makespan
    # Without their costs there are no collectives; a size is enough for some.
    plain = {"unshard_times": None, "reduce_times": None, "parameter_bytes": None}
    assert not simulated(**plain).schedule.has(Kind.UNSHARD)
    assert simulated(**plain, sharding="megatron").schedule.has(Kind.UNSHARD)
    assert simulated(**plain | {"parameter_bytes": 6}).schedule.has(Kind.UNSHARD)


def test_a_file_keeps_its_own_collectives(tmp_path: Path) -> None:
    placed = simulated(sharding="megatron")
    path = tmp_path / "placed.json"
    path.write_text(pipeplan.export(placed.schedule, to="json").text)
    costs = {name: value for name, value in COSTS.items() if name not in ("ranks", "microbatches", "chunks")}
    own = pipeplan.simulate(path, **costs)
    assert (own.schedule, own.sharding, own.makespan) == (placed.schedule, "own", placed.makespan)
    again = pipeplan.simulate(path, **costs, sharding="pytorch")
    assert (again.schedule, again.sharding) == (simulated().schedule, "pytorch")
    assert not pipeplan.simulate(path, **costs, sharding="none").schedule.has(Kind.RESHARD)


def test_a_rule_is_the_same_in_a_file_that_has_messages(tmp_path: Path) -> None:
    """Messages stand behind the collectives of their step, as where they are inserted last."""
    options: dict[str, Any] = {"forward_times": 1, "p2p_time": 1, "unshard_times": 6, "reduce_times": 3}
    shapes = (("1f1b", 4, 4, None), ("interleaved-1f1b", 2, 4, 2), ("zbv", 2, 4, None), ("dualpipev", 2, 4, None))
    path = tmp_path / "placed.json"
    for (name, ranks, microbatches, chunks), communication, rule in product(
        shapes, ("blocking", "streams"), ("pytorch", "megatron")
    ):
        shape: dict[str, Any] = {"ranks": ranks, "microbatches": microbatches, "chunks": chunks}
        asks: dict[str, Any] = {**options, "communication": communication, "sharding": rule}
        first = pipeplan.simulate(name, **shape, **asks)
        pipeplan.save(first.timeline.schedule, path)
        again = pipeplan.simulate(path, **asks)
        assert (again.timeline.schedule, again.makespan) == (first.timeline.schedule, first.makespan)
        # Messages of another run keep their order, and collectives stand between the same ops as without messages.
        plain = pipeplan.simulate(name, **shape, **asks | {"sharding": "none"}).timeline.schedule
        pipeplan.save(plain, path)
        placed = pipeplan.simulate(path, **asks).timeline.schedule
        assert without_collectives(placed) == plain
        assert without_communication(placed) == without_communication(first.timeline.schedule)
        for rank in placed:
            for op, behind in pairwise(rank):
                assert behind.kind not in SEND_KINDS or op.kind not in (Kind.REDUCE_GRAD, Kind.UNSHARD)


@pytest.mark.needs("search")
def test_commands_have_the_same_collectives() -> None:
    lines = pipeplan.export("interleaved-1f1b", to="rows", **COSTS, sharding="megatron").text.splitlines()
    assert lines[0].startswith("0UNSHARD 2UNSHARD 0F0")
    verdict = pipeplan.check("interleaved-1f1b", **COSTS, sharding="megatron", memory_limit=6)
    assert [problem.rule for problem in verdict.problems] == ["memory", "memory"]
    assert pipeplan.check("interleaved-1f1b", **COSTS, max_active_stages=1, memory_limit=6.5).valid
    compared = pipeplan.compare(["interleaved-1f1b", "looped-bfs"], **COSTS, sharding="megatron")
    assert {result.sharding for result in compared.results} == {"megatron"}
    answer = pipeplan.search(placement="loop", evaluations=200, **COSTS, max_active_stages=1, memory_limit=6.5)
    assert answer.sharding == "pytorch"
    assert answer.fits
    assert answer.lower_bound <= answer.makespan <= simulated(max_active_stages=1, memory_limit=6.5).makespan
    assert pipeplan.search(placement="loop", evaluations=50, **COSTS).sharding == "pytorch"


def test_what_has_no_effect_is_told() -> None:
    without = pipeplan.simulate("1f1b", ranks=2, microbatches=4, gradient_bytes=5, slice_attention=0.3)
    assert without.warnings == (
        "gradient bytes have no effect: without activation bytes, memory is counted in activations",
        "slice attention has no effect: the schedule does not slice sequences",
    )
    used = pipeplan.simulate(
        "seq1f1b", ranks=2, microbatches=4, gradient_bytes=5, activation_bytes=1, slice_attention=0.3
    )
    assert used.warnings == ()


def test_a_csv_is_not_blamed_for_the_collectives_of_a_check(tmp_path: Path) -> None:
    path = tmp_path / "plain.csv"
    pipeplan.simulate("1f1b", ranks=2, microbatches=4).save(path)
    sharded: dict[str, Any] = {"activation_bytes": 1, "parameter_bytes": 7}
    for schedule, trainer in ((path, None), (path, "pytorch"), ("1f1b", "pytorch")):
        assert pipeplan.check(schedule, memory_limit=40, ranks=2, microbatches=4, trainer=trainer, **sharded).valid
    over = pipeplan.check(path, memory_limit=4, **sharded)
    assert {problem.rule for problem in over.problems} == {"memory"}
