"""A run from its files: folders as trainers write them, packed traces, several steps, replicas, and what can be wrong."""

import gzip
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeplan.costs import Settings
from pipeplan.extensions.training.traces import parse_kineto, read_run
from pipeplan.formats import read_schedule_or_timeline, timeline_json
from pipeplan.foundation.errors import FormatError, InputError, PipeplanError
from pipeplan.model import Timeline, parse_schedule
from pipeplan.passes import insert_communication
from pipeplan.simulation import simulate
from tests.extensions.training.traces.traces import BASE, Event, annotations, rank_trace

PLAN = parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1")


def run_of(*, forward_times: float = 1.0) -> Timeline:
    costs = Settings(time_unit="ms", p2p_time=0.5, forward_times=forward_times).costs(PLAN.placement)
    run = simulate(insert_communication(PLAN), costs, communication="blocking").timeline
    return Timeline(run.schedule, run.start, run.end, "ms", "measured")


RUN, SLOWER = run_of(), run_of(forward_times=2.0)


def write(folder: Path, texts: Mapping[str, str]) -> Path:
    """Files of a folder, those that end in .gz packed."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return folder


def at(second: int) -> dict[str, Any]:
    return {"baseTimeNanoseconds": BASE + second * 10**9}


def torchtitan(*runs: Timeline) -> dict[str, str]:
    """Traces in torchtitan's folder, one step in an iteration's; the first is the fifth."""
    return {
        f"profiling/traces/iteration_{5 * number}/rank{rank}_trace.json.gz": rank_trace(run, rank, **at(number))
        for number, run in enumerate(runs, start=1)
        for rank in range(2)
    }


def test_torchtitans_folder_holds_a_step_in_every_iteration(tmp_path):
    folder = write(tmp_path, torchtitan(RUN, SLOWER, RUN))
    run = read_run(folder)
    assert (run.steps, run.replicas, run.files, run.pauses) == (3, 1, 6, ())
    assert [step.makespan for step in run.timelines] == pytest.approx([RUN.makespan, SLOWER.makespan, RUN.makespan])
    assert str(run) == "3 steps, from 6 files"
    one = read_run(folder / "profiling/traces/iteration_10")
    assert [step.makespan for step in one.timelines] == pytest.approx([SLOWER.makespan])


def test_steps_stand_in_the_order_of_their_times_not_of_their_names(tmp_path):
    names = {
        "z.pt.trace.json": (0, 1),
        "a.pt.trace.json.gz": (0, 2),
        "y.pt.trace.json": (1, 1),
        "b.pt.trace.json": (1, 2),
    }
    texts = {name: rank_trace((RUN, SLOWER)[second - 1], rank, **at(second)) for name, (rank, second) in names.items()}
    run = read_run(write(tmp_path, texts))
    assert [step.makespan for step in run.timelines] == pytest.approx([RUN.makespan, SLOWER.makespan])


def test_between_steps_of_one_recording_is_a_pause(tmp_path):
    def twice(rank: int) -> str:
        events = annotations(RUN, rank)
        return rank_trace(RUN, rank, traceEvents=events + [event | {"ts": event["ts"] + 100e3} for event in events])

    run = read_run(write(tmp_path, {"a.json": twice(0), "b.json": twice(1)}))
    assert run.pauses == pytest.approx([100 - RUN.makespan])


def test_a_packed_file_is_read_like_any_other(tmp_path):
    write(tmp_path, {"own.json.gz": timeline_json(RUN), "plan.csv.gz": "0F0,0B0\n"})
    assert read_run(tmp_path / "own.json.gz").timelines[0].makespan == RUN.makespan
    schedule = read_schedule_or_timeline(tmp_path / "plan.csv.gz")
    assert schedule == parse_schedule("0F0 0B0", name="plan")
    own = tmp_path / "packed, by another name.json"
    own.write_bytes((tmp_path / "own.json.gz").read_bytes())
    assert read_run(own).timelines[0].makespan == RUN.makespan


def test_own_records_in_a_folder_are_steps(tmp_path):
    folder = write(tmp_path, {"a.json": timeline_json(RUN), "b.json": timeline_json(SLOWER), "c.json": '{"other": 1}'})
    run = read_run(folder)
    assert [step.makespan for step in run.timelines] == [RUN.makespan, SLOWER.makespan]
    assert run.left_out == (str(folder / "c.json"),)
    assert run.typical.makespan == RUN.makespan


def test_a_recording_holds_its_steps_and_the_time_between_them(tmp_path):
    """The compute ops of the second step begin 3 ms after those of the first have ended."""
    later = RUN.makespan + 3.0 - SLOWER.start.min()
    steps = (RUN, replace(SLOWER, start=SLOWER.start + later, end=SLOWER.end + later))
    (tmp_path / "run.json").write_text(timeline_json(RUN, steps=steps))
    for source in (tmp_path / "run.json", tmp_path):
        run = read_run(source)
        assert [step.makespan for step in run.timelines] == pytest.approx([RUN.makespan, SLOWER.makespan])
        assert [step.start.min() for step in run.timelines] == [0.0, 0.0]
        assert (run.steps, run.files) == (2, 1)
        assert run.pauses == pytest.approx((3.0,))
        assert str(run) == "2 steps, from 1 file"


def replica(run: Timeline, stage: int, rank: int, processes: int = 4) -> str:
    return rank_trace(run, stage, distributedInfo={"rank": rank, "world_size": processes})


def test_ranks_that_ran_the_same_ops_are_replicas():
    """The second replica's run is slower; ranks are numbered pipeline first, as in torchtitan's mesh, or last."""
    for ranks in ([(0, 0), (0, 1), (1, 2), (1, 3)], [(0, 0), (1, 1), (0, 2), (1, 3)]):
        seen: dict[int, int] = {0: 0, 1: 0}
        texts = {}
        for stage, rank in ranks:
            texts[f"{rank}.json"] = replica((RUN, SLOWER)[seen[stage]], stage, rank)
            seen[stage] += 1
        timelines = parse_kineto(texts)
        assert [timeline.makespan for timeline in timelines] == pytest.approx([RUN.makespan, SLOWER.makespan])


def of_four(stage: int, rank: int, groups: list[list[int]]) -> str:
    whose = {"rank": rank, "world_size": 4, "pg_config": [{"ranks": group} for group in groups]}
    return rank_trace(RUN, stage, distributedInfo=whose)


@pytest.mark.parametrize("traced", [(0, 1), (0, 3)])
def test_half_of_a_pipeline_and_halves_of_two_are_no_pipeline(traced):
    """The ops alone are those of a whole one."""
    pipelines = [[0, 1, 2, 3]] if traced == (0, 1) else [[0, 1, 2, 3], [0, 2], [1, 3]]
    texts = {f"{rank}.json": of_four(stage, rank, pipelines) for stage, rank in enumerate(traced)}
    with pytest.raises(
        FormatError, match=r"^0.json, .*no process group has exactly these ranks.* each of the 4 processes"
    ):
        parse_kineto(texts)
    replicas = {f"{rank}.json": of_four(rank // 2, rank, [[0, 1, 2, 3]]) for rank in range(4)}
    assert len(parse_kineto(replicas)) == 2


def test_one_whole_replica_is_enough():
    texts = {f"{rank}.json": of_four(stage, rank, [[0, 1, 2, 3], [1, 3]]) for stage, rank in enumerate((1, 3))}
    assert [timeline.makespan for timeline in parse_kineto(texts)] == pytest.approx([RUN.makespan])


def test_what_is_no_file_is_passed_over(tmp_path):
    folder = write(tmp_path, {"old.json/rank0.json": rank_trace(RUN, 0), "old.json/rank1.json": rank_trace(RUN, 1)})
    os.mkfifo(folder / "pipe.json")
    assert read_run(folder).files == 2


def gpipe(rank: int, *, groups: list[list[int]] | None, stage: int, processes: int) -> str:
    """ScheduleGPipe's trace of one of two stages: two microbatches, with messages inside the annotations."""
    events: list[Event] = []
    for turn, name in enumerate(("Forward 0", "Forward 1", "Backward 0", "Backward 1")):
        later = stage if name.startswith("Forward") else 1 - stage
        start = 1000.0 * turn + 300 * later
        receives, sends = later == 1, later == 0
        events.append(event("user_annotation", name, start, 250))
        if receives:
            events += [
                event("cpu_op", "c10d::recv_", start + 1, 5),
                event("user_annotation", "gloo:recv", start + 2, 48),
            ]
        events.append(event("cpu_op", "aten::mm", start + 60, 100))
        if sends:
            events.append(event("cpu_op", "c10d::send", start + 200, 5))
    whose = {"rank": rank, "world_size": processes, "pg_config": [{"ranks": group} for group in groups or []]}
    return json.dumps({"distributedInfo": whose, "traceEvents": events})


def event(category: str, name: str, start: float, duration: float) -> Event:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration}


def test_gpipes_annotations_have_the_stage_of_their_rank():
    texts = {f"{rank}": gpipe(rank, groups=None, stage=rank, processes=2) for rank in (0, 1)}
    (timeline,) = parse_kineto(texts)
    assert timeline.schedule == parse_schedule("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1")
    assert timeline.start[4] == pytest.approx(0.35)  # its receive, at the annotation's beginning, is not the op
    assert timeline.end[0] == pytest.approx(0.2)  # nor is its send


@pytest.mark.parametrize("pipelines", [[[0, 2], [1, 3]], [[0, 1], [2, 3]]])
def test_gpipes_stages_are_told_by_the_process_groups(pipelines):
    others = [[rank for rank in range(4) if rank in (a, b)] for a, b in zip(*pipelines, strict=True)]
    texts = {
        str(rank): gpipe(rank, groups=[[0, 1, 2, 3], *pipelines, *others], stage=pipeline.index(rank), processes=4)
        for pipeline in pipelines
        for rank in pipeline
    }
    timelines = parse_kineto(texts)
    assert len(timelines) == 2
    assert {str(timeline.schedule[0][0]) for timeline in timelines} == {"0F0"}


def host_trace(*annotations: tuple[str, float, float]) -> str:
    """A trace of a host with these annotations: name, start and duration."""
    return json.dumps({"traceEvents": [event("user_annotation", *annotation) for annotation in annotations]})


def test_bad_runs():
    for texts, message in [
        (
            {"0": gpipe(0, groups=[[0, 1]], stage=0, processes=2)},
            "0: its stage is unknown, .* pass the trace of every",
        ),
        (
            {"0": gpipe(0, groups=[[0, 1]], stage=0, processes=2), "1": rank_trace(RUN, 1)},
            "0 and 1 are traces of different runs: only one of them annotates ops with their stages",
        ),
        (
            {str(rank): replica(RUN, stage, rank) for stage, rank in ((0, 0), (0, 1), (1, 2))},
            "2 traces have the ops of 0, but 1 those of 2: pass the trace of every rank, or those of one replica",
        ),
        (
            {
                "0": json.dumps(
                    {"traceEvents": [event("user_annotation", "PP:0F0", 0, 9), event("cpu_op", "c10d::send", 10, 1)]}
                )
            },
            "0 sends or receives, but the traces of its pipeline's other ranks are missing",
        ),
        (
            {"0": rank_trace(RUN, 0, **at(1)), "0 later": rank_trace(RUN, 0, traceEvents=annotations(RUN, 1), **at(2))},
            "0 and 0 later are both of rank 0 but have different ops.* name the folder of one",
        ),
        (
            {"0": host_trace(("PP:0F0", 0, 9), ("PP:0F0", 0, 9))},
            "0: PP:0F0 starts inside PP:0F0; annotate every op once, one after the other",
        ),
        (
            {"0": host_trace(("PP:0B0", 0.0, 10.0), ("PP:0F0", 20.0, 10.0))},
            r"0: out of order: rank 0, op 0 \(0B0\) waits for 0F0.* no run can",
        ),
        ({"0": host_trace(("PP:0F0", 0.0, 0.0), ("PP:0B0", 9.0, 0.0))}, "0: no op has a duration"),
        (
            {"0": host_trace(("Forward pass", 0, 9))},
            r"0 has no annotated pipeline ops \(such as 'PP:2F0'\); mark every op with: with torch\.profiler",
        ),
    ]:
        with pytest.raises(FormatError, match=message):
            parse_kineto(texts)


def test_bad_files(tmp_path):
    whole = gzip.compress(rank_trace(RUN, 0).encode())
    for name, data, message in (
        ("cut.json.gz", whole[:-100], "is cut off: its gzip stream has no end; copy it again as a whole"),
        ("head.json.gz", whole[:5], "is cut off"),
        ("bad.json.gz", whole[:40] + bytes(60) + whole[100:], "is damaged: .*; copy it again"),
        ("late.json.gz", whole[:-8] + bytes(8), "is damaged"),
        ("two.json.gz", gzip.compress(whole), "is not text"),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(FormatError, match=message):
            read_run(path)
        with pytest.raises(FormatError, match=message):
            read_run(tmp_path)
        path.unlink()
    with pytest.raises(FormatError, match=r"has no measured run: expected traces of PyTorch's profiler"):
        read_run(tmp_path)
    write(tmp_path, {"plan.csv": "0F0,0B0\n"})
    with pytest.raises(InputError, match="is a schedule without times"):
        read_run(tmp_path / "plan.csv")
    with pytest.raises(InputError, match="no such file or folder"):
        read_run(tmp_path / "absent")
    with pytest.raises(PipeplanError, match="cannot read"):
        read_run(tmp_path / "absent.json.gz")


def test_a_packed_file_has_a_limit_too(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeplan.extensions.training.traces.run_files.SIZE_LIMIT", 1000)
    path = tmp_path / "large.json.gz"
    path.write_bytes(gzip.compress(b" " * 100_000))
    with pytest.raises(FormatError, match="unpacks to more than 1,000 bytes"):
        read_run(path)


def test_stages_may_be_unsharded_several_times_a_step():
    """An unshard belongs to the step of the op after it, a reshard to that of the op before it."""
    row = "0UNSHARD 0F0 0RESHARD 0UNSHARD 0F1 0B0 0RESHARD 0UNSHARD 0B1 0RESHARD 0REDUCE_GRAD"
    names = [f"PP:{cell}" for cell in row.split()] * 2
    steps = parse_kineto({"a": host_trace(*((name, 10.0 * number, 9) for number, name in enumerate(names)))})
    assert [step.schedule for step in steps] == [parse_schedule(row)] * 2


def test_a_rank_of_many_is_no_run_unless_a_group_says_so():
    """What rank 0 of a billion ran is a whole schedule of one stage, and so a run only where it is a pipeline alone."""
    schedule = parse_schedule("0F0 0B0")
    alone = simulate(schedule, Settings(time_unit="ms").costs(schedule.placement)).timeline

    def trace(groups: list[list[int]]) -> str:
        whose = {"rank": 0, "world_size": 10**9, "pg_config": [{"ranks": group} for group in groups]}
        return rank_trace(alone, 0, distributedInfo=whose)

    assert len(parse_kineto({"a": trace([[0]])})) == 1
    for groups in ([], [[0, 1]]):
        with pytest.raises(
            FormatError, match=r"a: this is rank 0 of 1,000,000,000 processes, .* pass the trace of every"
        ):
            parse_kineto({"a": trace(groups)})
