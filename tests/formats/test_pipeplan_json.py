import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.costs import Settings
from pipeplan.formats import parse_json, read_schedule_or_timeline, schedule_json, timeline_json
from pipeplan.formats.pipeplan_json import parse_steps
from pipeplan.foundation.errors import FormatError, InputError, InvalidScheduleError, UnknownNameError
from pipeplan.model import Placement, Schedule, Timeline, parse_schedule
from pipeplan.simulation import simulate
from tests.formats.schedules import schedules

PLAN = {
    "format": "pipeplan-schedule",
    "version": 1,
    "schedule": "mine",
    "ranks": 2,
    "chunks": 1,
    "stages": 2,
    "microbatches": 1,
    "slices": 1,
    "placement": [0, 1],
    "rows": [["0F0", "0B0"], ["1F0", "1B0"]],
}
TIMES = {"format": "pipeplan-timeline", "start": [[0, 4], [1, 2]], "end": [[1, 6], [2, 4]], "unit": "ms"}


def changed(**changes) -> str:
    return json.dumps(PLAN | changes)


def test_a_schedule():
    schedule = parse_schedule("0F0 0B0\n1F0 1B0", name="mine")
    assert json.loads(schedule_json(schedule)) == PLAN
    read = parse_json(json.dumps(PLAN))
    assert isinstance(read, Schedule)
    assert (read, read.name) == (schedule, "mine")


def test_two_copies_of_the_model_have_a_placement_each():
    text = schedule_json(parse_schedule("0F0 1F1 1B1 0B0\n1F0 0F1 0B1 1B0", placement=Placement.bidirectional(2)))
    assert json.loads(text)["placement"] == [[0, 1], [1, 0]]


def test_a_timeline():
    timeline = parse_json(json.dumps(PLAN | TIMES))
    assert isinstance(timeline, Timeline)
    assert (timeline.makespan, timeline.unit, timeline.source) == (6.0, "ms", "simulated")
    assert timeline.start.tolist() == [0, 4, 1, 2]
    # Figures are not read back, those of a later version neither: adding keys keeps the version.
    later = parse_json(changed(**TIMES, makespan=3.0, figure_of_a_later_version=[1]))
    assert isinstance(later, Timeline)
    assert later.end.tolist() == [1, 6, 2, 4]


@given(schedules())
@settings(max_examples=30)
def test_schedules_are_read_as_they_were_written(schedule):
    read = parse_json(schedule_json(schedule))
    assert isinstance(read, Schedule)
    assert (read, read.name) == (schedule, schedule.name)


@given(schedules(), st.floats(0.1, 10), st.sampled_from(["", "us"]))
@settings(max_examples=30)
def test_timelines_are_read_as_they_were_written(schedule, forward, unit):
    costs = Settings(forward_times=forward, time_unit=unit).costs(schedule.placement)
    timeline = simulate(schedule, costs).timeline
    read = parse_json(timeline_json(timeline))
    assert isinstance(read, Timeline)
    assert read.schedule == schedule
    assert read.start.tobytes() == timeline.start.tobytes()
    assert read.end.tobytes() == timeline.end.tobytes()
    assert read.unit == unit


def test_the_steps_of_a_run_are_read_as_they_were_written():
    timeline = parse_json(changed(**TIMES, source="measured"))
    assert isinstance(timeline, Timeline)
    steps = tuple(replace(timeline, start=timeline.start + late, end=timeline.end + late) for late in (2.0, 9.5))
    text = timeline_json(timeline, steps=steps)
    read = parse_steps(text)
    assert [step.start.tolist() for step in read] == [[2, 6, 3, 4], [9.5, 13.5, 10.5, 11.5]]
    assert [step.source for step in read] == ["measured", "measured"]
    for other in (parse_json(text), *parse_steps(timeline_json(timeline))):
        assert isinstance(other, Timeline)
        assert other.start.tolist() == timeline.start.tolist()
    assert parse_steps(json.dumps(PLAN)) == ()
    assert "steps" not in json.loads(timeline_json(timeline))
    with pytest.raises(
        FormatError, match=r"run.json: 'end' has \[1, 2\] times per rank, but the rows have \[2, 2\] ops"
    ):
        parse_steps(changed(**TIMES, steps=[{"start": TIMES["start"], "end": [[1], [2, 4]]}]), name="run.json")


def test_strict():
    for text, message in [
        (json.dumps(PLAN)[:-9], "mine.json: line 1, column 190: the text ends too early"),
        ("[" * 100_000, "mine.json is not a schedule: expected a group of keys"),
        ("0F0,0B0", "mine.json: Expected `object`"),
        ("{}", "mine.json is not a schedule: the key 'format' is missing; pass settings files with --config"),
        (changed(format="plan"), "format: invalid value 'plan'"),
        (changed(version=2), "unsupported version 2: this pipeplan reads version 1"),
        (changed(colour="red"), "unknown key 'colour'"),
        (changed(ranks="2"), "Expected `int`, got `str`"),
        (changed(ranks=3), "the file declares 3 ranks, 1 chunks, 2 stages, but its placement has 2, 1, 2"),
        (changed(microbatches=0), "microbatches and slices must be at least 1, not 0 and 1"),
        (changed(placement=[0, 2]), "every rank from 0 to 2 must hold a stage"),
        (changed(placement=[0, [1]]), "placement must be the rank"),
        (changed(placement=[]), "at least one stage"),
        (changed(rows=[["0F0", "0G0"], ["1F0"]]), "rank 0, cell 1: '0G0' is not an op"),
        (changed(rows=[["0F0", "0F0"], ["1F0"]]), "duplicate"),
        (changed(**TIMES, source="guessed"), "Invalid enum value 'guessed'"),
        (
            changed(**TIMES | {"start": [[0], [1, 2]]}),
            r"'start' has \[1, 2\] times per rank, but the rows have \[2, 2\] ops",
        ),
        (changed(**TIMES | {"end": [[1, 3], [2, 4]]}), r"rank 0, op 1 \(0B0\) ends before it starts"),
        (changed(**TIMES).replace("6", "1e999"), "out of range|not finite"),
        (changed()[:-1] + ', "microbatches": 1}', "mine.json: duplicate key 'microbatches'"),
        (changed(rows=[["0F0", "0B0"]]), "mine.json: .*2 ranks needs as many rows, not 1"),
        (changed(rows=[["0F7"], ["1F0"]]), "microbatch 7 of 0F7 is out of range"),
        (changed(rows=[["5F0"], ["1F0"]]), "stage 5 of 5F0 is out of range"),
    ]:
        with pytest.raises((FormatError, InvalidScheduleError), match=message):
            parse_json(text, name="mine.json")


def test_the_ending_says_the_format(tmp_path):
    with pytest.raises(InputError, match=r"mine\.yaml is not a schedule: pass settings files with --config"):
        read_schedule_or_timeline("mine.yaml")
    with pytest.raises(UnknownNameError, match=r"suffix of a schedule file '\.doc'"):
        read_schedule_or_timeline(tmp_path / "plan.doc")
