import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.costs import Settings
from pipeplan.formats import timeline_csv
from pipeplan.formats.timeline_table import (
    parse_timeline_columns_json,
    parse_timeline_csv,
    timeline_columns_json,
)
from pipeplan.foundation.errors import FormatError
from pipeplan.model import Schedule, parse_schedule
from pipeplan.passes import insert_communication
from pipeplan.simulation import simulate
from tests.formats.schedules import schedules

RUN = simulate(
    parse_schedule("0F0 (0F1;0B0)OVERLAP_F_B 0B1", name="mine"),
    Settings(time_unit="ms").costs(parse_schedule("0F0").placement),
).timeline
TABLE = """\
schedule,rank,kind,stage,microbatch,slice,group,start,end,unit,source
mine,0,F,0,0,0,-1,0.0,1.0,ms,simulated
mine,0,F,0,1,0,1,1.0,4.0,ms,simulated
mine,0,B,0,0,0,1,1.0,4.0,ms,simulated
mine,0,B,0,1,0,-1,4.0,6.0,ms,simulated
"""


def test_a_line_an_op():
    assert timeline_csv(RUN) == TABLE
    assert json.loads(timeline_columns_json(RUN)) == {
        "schedule": ["mine"] * 4,
        "rank": [0] * 4,
        "kind": ["F", "F", "B", "B"],
        "stage": [0] * 4,
        "microbatch": [0, 1, 0, 1],
        "slice": [0] * 4,
        "group": [-1, 1, 1, -1],
        "start": [0, 1, 1, 4],
        "end": [1, 4, 4, 6],
        "unit": ["ms"] * 4,
        "source": ["simulated"] * 4,
    }


@pytest.mark.parametrize(
    ("write", "read"),
    [(timeline_csv, parse_timeline_csv), (timeline_columns_json, parse_timeline_columns_json)],
    ids=["csv", "json"],
)
@given(schedules(), st.booleans(), st.floats(0.1, 10), st.text(max_size=5), st.sampled_from(["", "us"]))
@settings(max_examples=30, deadline=None)
def test_reader_and_writer_undo_each_other(write, read, schedule: Schedule, messages, forward, name, unit):
    plan = (insert_communication(schedule) if messages else schedule).renamed(name)
    timeline = simulate(plan, Settings(forward_times=forward, time_unit=unit).costs(plan.placement)).timeline
    again = read(write(timeline))
    assert (again.schedule, again.schedule.name) == (plan, name)
    assert (again.unit, again.source) == (unit, "simulated")
    assert again.start.tobytes() == timeline.start.tobytes()
    assert again.end.tobytes() == timeline.end.tobytes()


def test_strict():
    for old, new, message in [
        (TABLE, "", "the first line of a timeline must be schedule,rank"),
        ("rank,kind", "kind,rank", "the first line of a timeline must be"),
        (",ms,simulated\nmine,0,B,0,1", "\nmine,0,B,0,1", "line 4 has 9 cells, not 11"),
        ("mine,0,B,0,1", "\nmine,0,B,0,1", "line 5 has 0 cells"),
        ("mine,0,B,0,1", "yours,0,B,0,1", "the same schedule, not mine, yours"),
        (",0,B,0,1", ",x,B,0,1", "Expected `int`, got `str`"),
        (",0,B,0,1", ",-1,B,0,1", "a rank must be from 0 to 1000000000, not -1"),
        (",0,F,0,0", ",1,F,0,0", "ranks must be in ascending order"),
        (",0,B,0,1", ",0,Q,0,1", "unknown kind 'Q'"),
        (",0,B,0,1", ",0,B,2,1", "no rank holds stage 1"),
        (",0,B,0,1,0,", ",0,B,0,1,99999,", "a slice must be from 0 to 32767, not 99999"),
        (",0,B,0,1", ",0,B,99999999999999999999,1", "a stage must be from 0 to 1000000000|Integer value out of range"),
        ("4.0,6.0", "4.0,nan", r"rank 0, op 3 \(0B1\) has no finite time"),
        ("4.0,6.0", "4.0,3.0", "ends before it starts"),
        ("simulated", "guessed", "Invalid enum value 'guessed'"),
        ("mine,0,F,0,0", '"mine,0,F,0,0', "unexpected end of data|cells, not 11"),
        (TABLE[TABLE.index("\n") + 1 :], "", "at least one op"),
    ]:
        with pytest.raises(FormatError, match=f"run.csv: .*({message})"):
            parse_timeline_csv(TABLE.replace(old, new), name="run.csv")


def test_columns_of_one_length():
    columns = json.loads(timeline_columns_json(RUN))
    with pytest.raises(FormatError, match="columns must have the same length"):
        parse_timeline_columns_json(json.dumps(columns | {"rank": [0]}))
    with pytest.raises(FormatError, match="unknown key 'colour'"):
        parse_timeline_columns_json(json.dumps(columns | {"colour": []}))
    with pytest.raises(FormatError, match="line 1, column 343: a quotation mark that is not closed"):
        parse_timeline_columns_json(json.dumps(columns)[:-5])
