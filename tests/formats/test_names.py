"""Names in files: what was written is read again, and what is no text becomes some."""

import os
from pathlib import Path

import pipeplan
from pipeplan.formats.pipeplan_json import parse_json, schedule_json
from pipeplan.formats.timeline_table import parse_timeline_csv, timeline_csv
from pipeplan.formats.trace import chrome_trace
from pipeplan.foundation.documents import json_text
from pipeplan.model import Schedule
from tests.drawing.examples import one_f_one_b
from tests.names import ODD


def test_names_come_back_as_they_were():
    for name in ODD:
        timeline = one_f_one_b()
        schedule = timeline.schedule.renamed(name)
        again = parse_json(schedule_json(schedule))
        assert isinstance(again, Schedule), name
        assert again.name == name, name
        named = type(timeline)(schedule, timeline.start, timeline.end, "ms")
        assert parse_timeline_csv(timeline_csv(named)).schedule.name == name, name
        assert json_text(name) in chrome_trace(named), name


def test_the_name_of_a_file_that_is_no_text_is_told_with_marks(tmp_path: Path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/run\xff\xfe.csv"))
    path.write_text("0F0,0B0")
    assert pipeplan.read_schedule(path).name == "run\ufffd\ufffd"
