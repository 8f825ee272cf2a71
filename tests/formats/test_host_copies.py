"""Copies to the host in files: those of pipeplan's own formats hold them."""

import pytest
from hypothesis import given, settings

import pipeplan
from pipeplan.formats import parse_json, read_schedule_or_timeline, schedule_json, timeline_json
from pipeplan.formats.rows import parse_rows
from pipeplan.formats.timeline_table import parse_timeline_csv, timeline_csv
from pipeplan.foundation.errors import FormatError, ShapeError
from pipeplan.model import HOST_KINDS, Timeline, format_schedule
from pipeplan.simulation import simulate
from tests.simulation.saving import saving_problems


@settings(max_examples=15, deadline=None)
@given(saving_problems())
def test_what_is_written_is_read(problem):
    schedule, costs = problem
    assert parse_rows(format_schedule(schedule)) == schedule
    assert parse_json(schedule_json(schedule)) == schedule
    timeline = simulate(schedule, costs).timeline
    for again in (parse_json(timeline_json(timeline)), parse_timeline_csv(timeline_csv(timeline))):
        assert isinstance(again, Timeline)
        assert again.schedule == schedule
        assert again.start.tolist() == timeline.start.tolist()


def test_files_of_others_say_what_they_cannot(tmp_path):
    moved = pipeplan.simulate("gpipe", ranks=2, microbatches=6, offload="all", offload_times=0.5)
    for name, error in (("x.csv", FormatError), ("x.comms.csv", FormatError), ("x.zb.txt", ShapeError)):
        with pytest.raises(error, match=r"host|zero-bubble"):
            moved.save(tmp_path / name)
    assert not list(tmp_path.iterdir())
    for name in ("x.schedule.json", "x.rows.txt", "x.trace.json", "x.timeline.csv"):
        moved.save(tmp_path / name)
    for name in ("x.schedule.json", "x.rows.txt", "x.timeline.csv"):
        read = read_schedule_or_timeline(tmp_path / name)
        schedule = read.schedule if isinstance(read, Timeline) else read
        assert not schedule.kinds.isdisjoint(HOST_KINDS)
