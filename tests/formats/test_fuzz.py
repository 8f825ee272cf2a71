"""Whatever a file holds, a reader gives what it says or one of our errors, which name it."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeplan.costs import Settings
from pipeplan.extensions.training.traces import read_run
from pipeplan.formats import (
    costs_json,
    parse_costs_json,
    read_schedule_or_timeline,
    timeline_csv,
    timeline_json,
    torch_csv,
)
from pipeplan.foundation.errors import PipeplanError
from pipeplan.model import parse_schedule
from pipeplan.passes import insert_communication
from pipeplan.simulation import simulate

PLAN = insert_communication(parse_schedule("0F0 0F1 (0F2;0B0)OVERLAP_F_B 0B1 0B2\n1F0 1B0 1F1 1B1 1F2 1B2"))
RUN = simulate(PLAN, Settings().costs(PLAN.placement)).timeline
WRITTEN = {
    "plan.csv": torch_csv(PLAN),
    "run.csv": timeline_csv(RUN),
    "run.json": timeline_json(RUN),
    "trace.json": '{"traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "PP:0F0", "ts": 1.0, "dur": 2.0}]}',
}
ANY_FILE = pytest.mark.parametrize("name", sorted(WRITTEN))
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for reader in (read_schedule_or_timeline, read_run):
        with suppress(PipeplanError):
            reader(path)


@ANY_FILE
@QUICK
@given(st.data())
def test_what_was_written_cut_off_or_changed(tmp_path: Path, name: str, data: st.DataObject):
    content = WRITTEN[name].encode()
    first = data.draw(st.integers(0, len(content)))
    stop = data.draw(st.integers(first, min(first + 9, len(content))))
    for changed in (content[:first], content[:first] + data.draw(st.binary(max_size=6)) + content[stop:]):
        read(tmp_path / name, changed)


@QUICK
@given(st.data())
def test_costs_cut_off_or_changed(data: st.DataObject):
    text = costs_json(Settings().costs(PLAN.placement))
    first = data.draw(st.integers(0, len(text)))
    with suppress(PipeplanError):
        parse_costs_json(text[:first] + data.draw(st.text(max_size=6)) + text[first + 2 :])
