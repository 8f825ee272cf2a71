"""Costs from a run: what was simulated with them is what they are found to be."""

import gzip
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import numpy as np
import pytest
from msgspec import UnsetType

import pipeplan
from pipeplan.costs import Settings, SettingsTable, Spread
from pipeplan.extensions.training.answers.run_costs import RunCosts, read_run_costs, run_costs
from pipeplan.extensions.training.answers.settings_record import SettingsRecord
from pipeplan.extensions.training.traces import MeasuredRun
from pipeplan.formats import chrome_trace
from pipeplan.foundation.errors import InputError
from pipeplan.model import Schedule, Timeline, parse_schedule
from pipeplan.simulation import compute_only, with_op_times
from tests.extensions.training.traces.traces import rank_trace

DATA = Path(__file__).parents[1] / "traces" / "data"

TIMES: dict[str, Any] = {
    "forward_times": [3.0, 4.0, 5.0, 6.0],
    "backward_input_times": [7.0, 8.0, 9.0, 6.5],
    "backward_weight_times": [2.0, 3.0, 4.0, 2.5],
    "time_unit": "ms",
}


def measured(schedule: str | Schedule, **settings: Any) -> Timeline:
    """A timeline that says it was measured."""
    return replace(pipeplan.simulate(schedule, **settings).timeline, source="measured")


def costs_of(*timelines: Timeline, pauses: tuple[float, ...] = ()) -> RunCosts:
    return run_costs(MeasuredRun(timelines, len(timelines), 1, len(timelines), pauses), "run")


@pytest.mark.parametrize("name", ["1f1b", "gpipe", "zb-h1"])
@pytest.mark.parametrize(
    "between",
    [
        {},
        {"p2p_time": 0.5},
        {"p2p_time": 0.5, "op_gap": 0.125},
        {"p2p_time": 0.5, "op_gap": 0.125, "message_time": 0.25},
    ],
)
def test_what_was_simulated_is_found(name, between):
    """In a schedule that has gaps without messages and with them, and waits."""
    shape = {"ranks": 4, "microbatches": 8}
    result = costs_of(measured(name, **shape, **TIMES, **between))
    settings = result.settings()
    assert (settings.ranks, settings.microbatches, settings.chunks) == (4, 8, 1)
    source = TIMES | {"backward_times": np.add(TIMES["backward_input_times"], TIMES["backward_weight_times"]).tolist()}
    kinds = ["backward_input_times", "backward_weight_times"] if name == "zb-h1" else ["backward_times"]
    for setting in ("forward_times", *kinds):
        assert getattr(settings, setting) == pytest.approx(tuple(source[setting])), setting
    for setting in ("p2p_time", "op_gap", "message_time"):
        assert getattr(settings, setting) == pytest.approx(between.get(setting, 0), abs=1e-9), setting
    assert result.predicted_step == pytest.approx(result.measured_steps.median)


def test_a_message_that_is_under_way_when_its_rank_is_free_is_waited_for():
    """It was sent before the rank was free, and comes after: the time between is no work of the rank's."""
    result = costs_of(
        measured("gpipe", ranks=2, microbatches=4, forward_times=[1.0, 0.5], p2p_time=1.0, time_unit="ms")
    )
    assert result.settings().p2p_time == pytest.approx(1.0)
    assert result.gaps.message is not None
    assert result.gaps.message.high == pytest.approx(0.0)


def test_messages_take_no_more_from_ranks_than_waits_show():
    """The first rank takes 4 to send; the other has the message 1 after the op: at most half of it is each rank's."""
    schedule = parse_schedule("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1")
    start = np.array([0, 5, 10, 15, 2, 7, 8, 13], np.float64)
    result = costs_of(Timeline(schedule, start, start + 1, "ms", "measured"))
    assert result.settings().message_time == pytest.approx(0.5)
    assert result.gaps.transfer is not None
    assert result.gaps.transfer.low == pytest.approx(0.0)


def test_slices_and_overlapped_pairs():
    sliced = costs_of(measured("seq1f1b", ranks=2, microbatches=4, slices=2, time_unit="ms"))
    assert sliced.settings().slices == 2
    pairs = costs_of(measured("1f1b-overlap", ranks=2, microbatches=4, overlap_times=[3.5, 4.0], time_unit="ms"))
    assert pairs.settings().overlap_times == pytest.approx((3.5, 4.0))
    assert pairs.settings().forward_times == pytest.approx((1.0, 1.0))


def test_times_are_medians_over_all_steps_and_one_slow_op_does_not_count():
    run = measured("1f1b", ranks=2, microbatches=4, time_unit="ms")
    end = run.end.copy()
    end[-1] += 100
    slow = replace(run, end=end)
    result = costs_of(run, slow, replace(run, start=run.start * 1.5, end=run.end * 1.5), pauses=(4.0, 2.0, 3.0))
    assert result.stages[0]["F"] == Spread(1.0, 1.0, 1.5, 12)
    assert result.settings().backward_times == (2.0, 2.0)
    assert result.settings().step_time == 3.0
    assert result.measured_steps.median == pytest.approx(1.5 * run.makespan)


def test_a_kind_that_a_stage_did_not_run_follows_from_the_others():
    """The backward is split on the first stage only."""
    plan = parse_schedule("0F0 0I0 0F1 0I1 0W0 0W1\n1F0 1B0 1F1 1B1")
    times = {"forward_times": 1.0, "backward_input_times": [7.0, 5.0], "backward_weight_times": [2.0, 6.0]}
    settings = costs_of(measured(plan, **times, time_unit="ms")).settings()
    assert settings.backward_times == pytest.approx((9.0, 11.0))
    assert settings.backward_input_times == pytest.approx((7.0, 5.5))
    assert settings.backward_weight_times == pytest.approx((2.0, 5.5))


def test_profile_from_traces(tmp_path):
    run = measured("gpipe", ranks=2, microbatches=4, forward_times=[1.5, 2.5], p2p_time=0.25, time_unit="ms")
    folder = tmp_path / "run"
    folder.mkdir()
    for rank in range(2):
        (folder / f"rank{rank}_trace.json.gz").write_bytes(gzip.compress(rank_trace(run, rank).encode()))
    profile = pipeplan.profile(source=folder)
    assert repr(profile) == f"<CostProfile of {folder}: 2 stages, 1 step, from 2 files>"
    assert profile._rows() == [
        {"stage": 0, "forward": pytest.approx(1.5), "backward": pytest.approx(3.0)},
        {"stage": 1, "forward": pytest.approx(2.5), "backward": pytest.approx(5.0)},
    ]
    record = profile.to_dict()
    assert record["forward_times"] == [pytest.approx(1.5), pytest.approx(2.5)]
    assert "memory_limit" not in record
    assert msgspec.convert(record, pipeplan.CostProfile).settings() == profile.settings()
    for name in ("costs.yaml", "costs.json"):
        profile.save(tmp_path / name)
        again = pipeplan.simulate("gpipe", config=tmp_path / name)
        assert again.makespan == pytest.approx(run.makespan)
    comments = (tmp_path / "costs.yaml").read_text()
    assert "# run: 1 step, from 2 files; 2 ranks, 2 stages, 4 microbatches\n" in comments
    assert f"# step: measured {run.makespan:.4g} " in comments
    assert "# stage 1, F 2.5 (2.5 to 2.5), B 5 (5 to 5)\n" in comments
    assert "# transfer between ranks 0.25 (0.25 to 0.25)\n" in comments


def test_what_can_stand_for_a_run(tmp_path):
    run = measured("1f1b", ranks=2, microbatches=4, time_unit="us")
    pipeplan.save(run, tmp_path / "run.json")
    assert read_run_costs(tmp_path / "run.json").settings().forward_times == pytest.approx((1e-3, 1e-3))
    pipeplan.save(pipeplan.simulate("1f1b"), tmp_path / "plan.json")
    with pytest.raises(InputError, match=r"plan\.json is a simulated timeline; costs need a run's traces"):
        pipeplan.profile(source=tmp_path / "plan.json")
    other = measured("gpipe", ranks=2, microbatches=4, time_unit="us")
    pipeplan.save(other, tmp_path / "other.json")
    (tmp_path / "plan.json").unlink()
    with pytest.raises(InputError, match="holds steps of different schedules; pass the traces of one run"):
        pipeplan.profile(source=tmp_path)
    (tmp_path / "export.json").write_text(chrome_trace(run))
    with pytest.raises(pipeplan.PipeplanError, match=r"export\.json has no annotated pipeline ops"):
        pipeplan.profile(source=tmp_path / "export.json")


@pytest.mark.parametrize(
    ("beside", "field"),
    [
        ({"ranks": 2}, "ranks"),
        ({"p2p_time": 1.0}, "p2p_time"),
    ],
)
def test_nothing_stands_beside_a_run(beside, field):
    with pytest.raises(
        InputError, match=f"the traces already determine the model and its times: drop {field}"
    ) as error:
        pipeplan.profile(source="anything", **beside)
    assert error.value.field == field
    with pytest.raises(InputError, match="the traces already determine the schedule: drop zbv"):
        pipeplan.profile("zbv", source="anything")


def test_torchtitans_run_gives_costs_diff_and_explain_take_it_too(tmp_path):
    folder = DATA / "torchtitan_zbv_fsdp"
    profile = pipeplan.profile(source=folder)
    assert isinstance(profile.measured, RunCosts)
    settings = profile.settings()
    assert (settings.ranks, settings.chunks, settings.microbatches) == (2, 2, 4)
    inputs = settings.backward_input_times
    assert isinstance(inputs, tuple)
    assert 0 < inputs[0] < 0.2 < min(inputs[1:])
    profile.save(tmp_path / "costs.yaml")
    result = pipeplan.diff("zbv", folder, config=tmp_path / "costs.yaml")
    assert result.measured.source == "measured"
    assert len(result.kinds) == 12
    typical = read_run_costs(folder).run.typical
    assert result.measured.makespan == pytest.approx(compute_only(typical).makespan)
    assert pipeplan.explain(folder).result.makespan == pytest.approx(typical.makespan)


def test_copies_to_the_host_are_found_where_there_are_some():
    """Of a stage without any, the longest of the others stands."""
    rows = "0F0 0OFFLOAD0 0F1 0RELOAD0 0B0 0B1\n1F0 1B0 1F1 1B1"
    times = {"forward_times": [3.0, 4.0], "backward_times": [6.0, 8.0], "time_unit": "ms"}
    timeline = measured(parse_schedule(rows), **times, offload_times=[1.5, 9.0])
    result = costs_of(timeline)
    assert result.settings().offload_times == (1.5, 1.5)
    assert result.predicted_step == pytest.approx(timeline.makespan)
    assert [row["offload"] for row in result.rows()] == [1.5, None]
    untold = run_costs(MeasuredRun((timeline,), 1, 1, 1, copies_timed=False), "traces")
    assert untold.settings().offload_times is None
    assert untold.schedule == compute_only(timeline).schedule
    assert with_op_times(timeline, Settings(offload_bandwidth=3.0)) == Settings(
        forward_times=(3.0, 4.0), backward_times=(6.0, 8.0), offload_times=(1.5, 1.5), time_unit="ms"
    )


def waiting_as_work(timeline: Timeline) -> Timeline:
    """A timeline whose ops begin when their rank was free: what they waited for counts as work."""
    start = timeline.start.copy()
    same = np.diff(timeline.schedule.rank) == 0
    start[1:][same] = timeline.end[:-1][same]
    return replace(timeline, start=start)


def test_waiting_that_counts_as_work_is_never_written_without_a_word(tmp_path, capsys):
    """As a trace shows it whose op times include the receive: messages would arrive before they were sent."""
    times: dict[str, Any] = {"forward_times": [1.0, 1.5, 2.0], "backward_times": [2.5, 3.75, 5.0], "p2p_time": 0.1}
    true = measured("gpipe", ranks=3, microbatches=4, time_unit="ms", **times)
    assert costs_of(true, pauses=(0.5,)).doubts() == []
    wrong = costs_of(waiting_as_work(true), pauses=(-4.0,))
    assert [reason.partition(":")[0] for reason in wrong.doubts()] == ["transfer between ranks", "end of a step"]
    assert all("is negative and counts as 0" in reason for reason in wrong.doubts())
    pipeplan.CostProfile.of(wrong).save(tmp_path / "costs.yaml")
    assert (tmp_path / "costs.yaml").read_text().count("# warning: ") == 2
    pipeplan.CostProfile.of(wrong).print()
    assert capsys.readouterr().out.count("warning: ") == 2
    assert wrong.doubts() == list(pipeplan.CostProfile.of(wrong).checks()[1:3])


def test_op_times_that_exceed_the_run_are_never_written_without_a_word():
    true = measured("gpipe", ranks=3, microbatches=4, time_unit="ms")
    longer = replace(costs_of(true), measured_steps=Spread.of([0.5 * true.makespan]))
    assert longer.error == pytest.approx(1.0)
    (reason,) = longer.doubts()
    assert reason.startswith(f"the op times of a step add up to {true.makespan:.4g} ms, more than")


def test_a_profile_has_every_setting_with_its_type():
    types = get_type_hints(SettingsTable)
    for field, setting in zip(msgspec.structs.fields(SettingsRecord), fields(SettingsTable), strict=True):
        kind = types[setting.name]
        assert field.name == setting.name
        if setting.name != "layers_per_stage":  # an answer has numbers
            assert field.type == (kind | UnsetType if setting.default is None else kind), setting.name
