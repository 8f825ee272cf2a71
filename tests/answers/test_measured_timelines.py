"""A measured timeline is explained and exported as it was measured, or refused; never simulated again."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.foundation.errors import InputError, ShapeError

SHAPE: dict[str, Any] = {"ranks": 3, "microbatches": 4}
TIMES: dict[str, Any] = {"forward_times": [3, 4, 5], "backward_times": [7, 8, 9], "p2p_time": 0.5, "time_unit": "ms"}


def measured(tmp_path, name="1f1b", **settings):
    """A file with a timeline that says it was measured, and what was simulated for it."""
    result = pipeplan.simulate(name, **SHAPE, **TIMES, **settings)
    path = tmp_path / "run.json"
    pipeplan.save(replace(result.timeline, source="measured"), path)
    return path, result


@pytest.mark.parametrize("name", ["1f1b", "zb-h1", "1f1b-overlap"])
def test_it_is_explained_as_it_was_measured(tmp_path, name):
    path, simulated = measured(tmp_path, name)
    for source in (path, str(path), pipeplan.read_timeline(path)):
        answer = pipeplan.explain(source)
        assert answer.result.timeline.source == "measured"
        assert answer.result.makespan == simulated.makespan
        np.testing.assert_allclose(answer.totals.sum(axis=1), simulated.timeline.idle)
    expected = pipeplan.explain(name, **SHAPE, **TIMES)
    np.testing.assert_allclose(answer.totals, expected.totals, atol=1e-9)
    assert answer.explain.critical_path.by_kind == expected.explain.critical_path.by_kind
    assert answer.result.bound.value == pytest.approx(simulated.bound.value)


@pytest.mark.parametrize("name", ["1f1b", "zb-h1", "interleaved-1f1b"])
def test_a_stage_that_is_far_slower_than_its_peers_is_named(tmp_path, name):
    shape: dict[str, Any] = {"ranks": 4, "microbatches": 8, "time_unit": "ms", "times_per": "stage"}
    stages = pipeplan.simulate(name, **shape).stages
    for slow in ((), (2,), (0, stages - 1)):
        times = [3.0 if stage in slow else 1.0 for stage in range(stages)]
        run = pipeplan.simulate(name, **shape, forward_times=times, backward_times=[2 * time for time in times])
        path = tmp_path / "run.json"
        pipeplan.save(replace(run.timeline, source="measured"), path)
        named = re.findall(
            r"^Stage (\d+), on ranks? \d.* takes 3 times as long .*: 9",
            "\n".join(pipeplan.explain(path).sentences),
            re.M,
        )
        assert sorted(map(int, named)) == sorted(slow)


def test_pairs_of_a_run_are_fitted_by_both_of_their_stages():
    shape: dict[str, Any] = {"ranks": 2, "chunks": 2, "microbatches": 8, "time_unit": "ms", "times_per": "stage"}
    forward, backward = [1.0, 1.0, 1.0, 4.0], [2.0, 2.0, 2.0, 8.0]
    table = np.maximum(0.8 * np.add.outer(forward, backward), backward).tolist()
    times: dict[str, Any] = {"forward_times": forward, "backward_times": backward, "overlap_times": table}
    plan = pipeplan.simulate("interleaved-1f1b-overlap", **shape, **times)
    fitted = pipeplan.explain(replace(plan.timeline, source="measured")).explain.fitted_costs
    assert fitted is not None
    assert fitted.makespan == pytest.approx(plan.makespan)
    assert "pairs of stages that never ran are assumed to save the mean share of the others" in fitted.sentence


@pytest.mark.parametrize("unit", ["ms", "s", ""])
def test_what_would_help_is_simulated_on_costs_fitted_to_it(capsys, unit):
    """Of a run that took exactly its planned times, what would help is what helps the plan."""
    times = TIMES | {"time_unit": unit}
    plan = pipeplan.simulate("1f1b", **SHAPE, **times)
    answer = pipeplan.explain(replace(plan.timeline, source="measured"))
    fitted, planned = answer.explain.fitted_costs, pipeplan.explain("1f1b", **SHAPE, **times)
    assert fitted is not None
    assert planned.explain.fitted_costs is None
    assert fitted.makespan == pytest.approx(plan.makespan)
    assert fitted.error == pytest.approx(0.0)
    of_plan = {what.change: what for what in planned.what_ifs if what.kind in ("costs", "schedule")}
    of_run = {what.change: what for what in answer.what_ifs}
    alike = [name for name in of_run if name in of_plan and of_run[name].kind == "costs"]
    assert alike
    for name in alike:
        assert of_run[name].makespan == pytest.approx(of_plan[name].makespan)
    schedules = [what for what in answer.helping if what.kind == "schedule"]
    assert schedules
    best = answer.helping[0]
    assert best.gain == pytest.approx(fitted.makespan - best.makespan)
    less = f"{best.change} would take {100 * best.gain / fitted.makespan:.1f}% less, simulated on its measured times"
    assert answer.headline.endswith(less)
    answer.print()
    printed = " ".join(capsys.readouterr().out.split())
    assert "What would help is simulated on costs fitted to this run" in printed
    assert "each half of a backward is assumed to take half of it" in printed
    assert "(this order) " in printed
    assert answer.advice in printed
    assert answer.result.timeline.source == "measured"


def test_a_run_that_took_longer_than_its_ops_explain_says_by_how_much():
    plan = pipeplan.simulate("1f1b", **SHAPE, **TIMES)
    timeline = plan.timeline
    late = replace(timeline, source="measured", start=timeline.start.copy(), end=timeline.end.copy())
    last = timeline.start >= np.median(timeline.start)
    late = replace(late, start=np.where(last, late.start + 20, late.start), end=np.where(last, late.end + 20, late.end))
    answer = pipeplan.explain(late)
    fitted = answer.explain.fitted_costs
    assert fitted is not None
    assert answer.makespan == plan.makespan + 20
    assert fitted.error == pytest.approx(fitted.makespan / answer.makespan - 1)
    assert fitted.error < -0.1
    assert f"({100 * fitted.error:.1f}% against measured)" in fitted.sentence
    assert "pipeplan diff" in fitted.sentence
    assert f"which explain {100 * (1 + fitted.error):.1f}% of the step" in answer.headline


def test_other_numbers_of_stages_share_the_measured_times_by_depth():
    """Two chunks per rank divide a stage; one chunk per rank adds two: the work of the whole model stays."""
    shape: dict[str, Any] = {"ranks": 4, "microbatches": 8, "forward_times": 1.0, "time_unit": "ms"}
    for name, chunks in (("1f1b", 1), ("interleaved-1f1b", 2)):
        timeline = pipeplan.simulate(name, **shape).timeline
        assert timeline.schedule.placement.chunks == chunks
        run = replace(timeline, source="measured", schedule=timeline.schedule.renamed("run"))
        of_run, of_plan = (
            {what.change: what.makespan for what in answer.what_ifs if what.kind == "schedule"}
            for answer in (pipeplan.explain(run), pipeplan.explain(name, **shape))
        )
        assert len(of_run) > 1
        assert of_run == pytest.approx(of_plan)
        other_chunks = {pipeplan.simulate(other, **shape).chunks for other in of_run} - {chunks}
        assert other_chunks or chunks == 2


def test_times_beside_it_are_refused(tmp_path):
    path, _ = measured(tmp_path)
    for setting in ({"forward_times": 1}, {"p2p_time": 1.0}, {"communication": "blocking"}):
        with pytest.raises(
            InputError,
            match=rf"run\.json holds a measured timeline, which has its own times: drop {next(iter(setting))}",
        ) as error:
            pipeplan.explain(path, **setting)
        assert error.value.field == next(iter(setting))
    assert pipeplan.explain(path, memory_limit="8act").result.fits
    with pytest.raises(ShapeError, match="has 3 ranks, not 4"):
        pipeplan.explain(path, ranks=4)


def test_it_is_exported_as_it_was_measured(tmp_path):
    path, simulated = measured(tmp_path)
    trace = json.loads(pipeplan.export(path, to="trace").text)
    ends = {event["ts"] + event["dur"] for event in trace["traceEvents"] if event["ph"] == "X"}
    assert max(ends) == pytest.approx(simulated.makespan * 1e3)
    assert ",measured\n" in pipeplan.export(path, to="timeline-csv").text
    assert pipeplan.export(path, to="torch-csv").text == pipeplan.export("1f1b", to="torch-csv", **SHAPE).text


@pytest.mark.needs("search")
def test_it_is_neither_simulated_nor_compared_nor_searched_from(tmp_path):
    path, _ = measured(tmp_path)
    sentence = r"run\.json holds a measured timeline, .* convert it to a schedule \(\.csv\) first"
    with pytest.raises(InputError, match=sentence):
        pipeplan.simulate(path)
    with pytest.raises(InputError, match=sentence):
        pipeplan.compare("zbv", path)
    with pytest.raises(InputError, match=sentence):
        pipeplan.search(start=path, evaluations=10, **SHAPE)
    pipeplan.save(pipeplan.read_schedule(path), tmp_path / "order.csv")
    assert pipeplan.simulate(tmp_path / "order.csv").schedule.microbatches == 4


def test_a_simulated_timeline_says_what_becomes_of_it(tmp_path):
    result = pipeplan.simulate("1f1b", **SHAPE, **TIMES)
    path = tmp_path / "planned.json"
    result.save(path)
    again = pipeplan.simulate(path, **TIMES)
    assert again.makespan == result.makespan
    assert "planned.json holds a timeline that was simulated before" in again.warnings[0]
    assert pipeplan.explain(path).result.makespan == result.makespan
    assert pipeplan.explain(path, forward_times=1).result.makespan < result.makespan
    assert ",simulated\n" in pipeplan.export(path, to="timeline-csv").text
    assert json.loads(pipeplan.export(path, to="costs").text)["forward"] == [3, 4, 5]
