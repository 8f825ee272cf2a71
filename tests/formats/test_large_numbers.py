"""Files of a few bytes with numbers of any size: refused by their numbers, before anything is made of them."""

import json
from pathlib import Path

import pytest

from pipeplan.extensions.training.traces import read_run
from pipeplan.formats import read_schedule_or_timeline
from pipeplan.formats.timeline_table import COLUMNS
from pipeplan.foundation.errors import PipeplanError
from tests.little_memory import little_memory

PLAN = {
    "format": "pipeplan-schedule", "version": 1, "schedule": "x", "ranks": 2, "chunks": 1, "stages": 2, "microbatches": 1,
    "slices": 1, "placement": [0, 1], "rows": [["0F0", "0B0"], ["1F0", "1B0"]],
}  # fmt: skip
ANNOTATION = {"ph": "X", "cat": "user_annotation", "dur": 1.0}


def table(*lines: str) -> str:
    return "\n".join([",".join(COLUMNS), *lines])


def trace(*names: str, **more: object) -> str:
    events = [ANNOTATION | {"name": f"PP:{name}", "ts": float(at)} for at, name in enumerate(names)]
    return json.dumps({"traceEvents": events, **more})


@pytest.mark.parametrize(
    ("file", "text", "rule"),
    [
        ("a.json", json.dumps(PLAN | {"placement": [0, 50_000_000]}), "must hold a stage; rank 1 does not"),
        ("a.json", json.dumps(PLAN | {"placement": [0, 10**4000]}), r"rank from 0 to about 10\^4000 must hold a stage"),
        ("a.json", json.dumps(PLAN | {"placement": [[0]] * 1000}), "at most 64 copies of the model, not 1000"),
        ("a.json", json.dumps(PLAN | {"microbatches": 10**17}), "at most 20,000,000 can be scheduled"),
        ("a.json", json.dumps(PLAN | {"microbatches": 10**4000}), r"2 stages x about 10\^4000 microbatches need"),
        ("a.json", json.dumps(PLAN | {"slices": 10**9}), "slices must be at most 32,768, not 1,000,000,000"),
        ("a.json", json.dumps(PLAN | {"ranks": 10**9, "stages": 10**9}), "declares 1000000000 ranks, .* placement has 2"),
        ("a.csv", "0F999999999,0B999999999", "1000000000 microbatches need 1,000,000,000 forwards; at most 20,000,000"),
        ("a.csv", "999999999F0", "no rank holds stage 0, but the stages go up to 999999999"),
        ("a.csv", "0F0.65536,0B0.65536", "an op's slice must be at most 32,767, not 65536"),
        ("a.csv", "0F0,0B0\n" + ",\n" * 1_000_000, "line 2 is blank"),
        ("a.csv", table("a,1000000000,F,0,0,0,-1,0,1,,simulated"), "ranks 0 to 1000000000 must each have an op"),
        ("a.csv", table("a,0,F,0,1000000000,0,-1,0,1,,simulated"), "1000000001 microbatches need"),
        ("a.csv", table("a,0,F,1000000000,0,0,-1,0,1,,simulated"), "no rank holds stage 0"),
        ("trace/a.json", trace("0F999999999", "0B999999999"), "1000000000 microbatches need"),
        ("trace/a.json", trace("999999999F0", "999999999B0"), "no rank holds stage 0"),
        ("trace/a.json", trace("0F0", "0B0", baseTimeNanoseconds=10**400), "does not fit into 64 bits"),
    ],
)  # fmt: skip
def test_large_numbers_in_small_files(tmp_path: Path, file, text, rule):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    with little_memory(), pytest.raises(PipeplanError, match=rule) as refusal:
        read_run(path.parent) if path.parent.name == "trace" else read_schedule_or_timeline(path)
    assert "a.json" in str(refusal.value) or "a.csv" in str(refusal.value)
    assert len(str(refusal.value)) < 400
