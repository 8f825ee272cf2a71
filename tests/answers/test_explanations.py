import json
import re
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.answers.answers import save
from pipeplan.answers.simulating import result as results
from pipeplan.answers.simulating.result import view_of_result
from pipeplan.cli import main
from pipeplan.model import Reason


def test_reasons_add_up_and_what_ifs_are_simulated():
    costs: dict[str, Any] = {"ranks": 4, "microbatches": 6, "forward_times": [1, 1, 1, 2], "p2p_time": 0.5}
    answer = pipeplan.explain("1f1b", **costs)
    np.testing.assert_allclose(answer.totals.sum(axis=1), answer.result.timeline.idle)
    what_ifs = {what.change: what.makespan for what in answer.what_ifs}
    assert what_ifs["transfers free"] == pipeplan.simulate("1f1b", **costs | {"p2p_time": 0}).makespan
    assert what_ifs["1 more microbatch"] == pipeplan.simulate("1f1b", **costs | {"microbatches": 7}).makespan
    assert set(what_ifs) >= {"stage 3 balanced", "all stages balanced"}


def test_a_strategy_that_takes_only_even_numbers_gets_two_more():
    answer = pipeplan.explain("dualpipe", ranks=4, microbatches=8)
    changes = [what.change for what in answer.what_ifs if what.kind == "microbatches"]
    assert changes == ["16 microbatches", "2 more microbatches"]


def test_other_schedules_help_the_shortest_first_and_each_with_less_memory_than_the_one_before():
    costs: dict[str, Any] = {"ranks": 4, "microbatches": 8, "p2p_time": 0.1}
    answer = pipeplan.explain("1f1b", **costs)
    others = [what for what in answer.helping if what.kind == "schedule"]
    assert [what.change for what in others] == ["zbv", "v-half", "v-min"]
    peaks = [what.peak for what in others]
    assert peaks == sorted(set(peaks), reverse=True)
    for what in others:
        alone = pipeplan.simulate(what.change, **costs)
        assert (what.makespan, what.peak_activation) == (alone.makespan, alone.memory.peak_activation.max())
    times = [what.per_microbatch for what in answer.helping]
    assert times == sorted(times)
    assert times[-1] < answer.per_microbatch


def test_other_schedules_take_the_slices_and_those_that_would_deadlock_are_left_out():
    sliced = pipeplan.explain("slimpipe", ranks=4, microbatches=8)
    assert "mepipe" in [remedy.change for remedy in sliced.what_ifs]
    # Overlapped pairs deadlock in groups of one.
    assert pipeplan.explain("interleaved-1f1b", ranks=5, microbatches=3, group_size=1).what_ifs


def test_over_the_limit_what_fits_helps_and_recomputation_is_among_it():
    answer = pipeplan.explain("gpipe", ranks=4, microbatches=16, memory_limit="6act")
    assert all(what.fits for what in answer.helping)
    assert {"schedule", "recomputation"} <= {what.kind for what in answer.helping}
    assert "8 microbatches" in {what.change for what in answer.what_ifs if not what.fits}


def test_the_longest_wait_names_its_op_and_the_rank_that_it_comes_back_from():
    answer = pipeplan.explain("1f1b", ranks=4, microbatches=8, p2p_time=0.1)
    wait = answer.waits[0]
    assert wait is not None
    assert (wait.start, wait.end) == pytest.approx((4.0, 10.6))
    assert (str(wait.op), wait.source) == ("0B0", 3)
    assert pipeplan.explain("zbv", ranks=4, microbatches=8).waits == (None,) * 4


def test_a_gap_between_ops_is_no_wait():
    assert pipeplan.explain("zbv", ranks=2, microbatches=8, op_gap=0.1).waits[0] is None
    wait = pipeplan.explain("1f1b", ranks=2, microbatches=4, op_gap=0.1).waits[0]
    assert wait is not None
    assert (str(wait.op), wait.source) == ("0B0", 1)
    assert wait.end == pytest.approx(4.3)


def test_a_limit_that_a_rank_does_not_keep_holds_nothing_back():
    shape: dict[str, Any] = {"ranks": 4, "microbatches": 8}
    held = {
        limit: pipeplan.explain("1f1b", **shape, memory_limit=limit).totals[0, Reason.MEMORY]
        for limit in ("3act", "4act")
    }
    assert held == {"3act": 0.0, "4act": pytest.approx(6.0)}


def test_more_work_than_is_timed_is_not_tried(monkeypatch):
    monkeypatch.setattr("pipeplan.answers.explaining.remedies.MOST_WORK", 2_000)
    answer = pipeplan.explain("1f1b", ranks=4, microbatches=8)
    assert [what.change for what in answer.what_ifs if what.kind == "schedule"] == ["interleaved-zb"]
    monkeypatch.setattr("pipeplan.answers.explaining.remedies.MOST_WORK", 0)
    answer = pipeplan.explain("1f1b", ranks=4, microbatches=8)
    assert not any(what.kind == "schedule" for what in answer.what_ifs)


def test_the_command(capsys):
    assert main(["explain", "zb-h1", "-p", "4", "-m", "8", "--p2p-time", "0.1", "--verbose"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for sentence in (
        "zb-h1 takes 28.2; its ranks idle 14.9% of that time, 46.4% of it waiting for ops on other ranks; zbv would take "
        "5.0% less 4 ranks, 4 stages (linear), 8 microbatches",
        "Rank 0 idles 4.2 of 28.2 (14.9%): 3.6 waiting for ops on other ranks, 0.6 waiting for messages. Its longest wait, "
        "3.6 from 4.0 to 7.6, is before 0I0, whose gradient is on its way from rank 3.",
        "critical path",
        "transfers free 27.0 3.375 -4.3% 4",
        "Recommended: train with zbv: 26.8 per step instead of 28.2 (-5.0%), with the same memory.",
    ):
        assert sentence in text
    assert main(["explain", "zb-h1", "-p", "4", "-m", "8", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    reasons = document["explain"]["reasons"]
    assert [sum(values) for values in zip(*reasons.values(), strict=True)] == pytest.approx(document["idle"])
    assert {"change", "makespan", "gain", "per_microbatch", "peak_activation"} <= set(
        document["explain"]["what_ifs"][0]
    )


def test_a_sentence_and_the_table_have_the_same_numbers(capsys):
    assert main(["explain", "1f1b", "-p", "4", "-m", "8", "--p2p-time", "0.01", "--op-gap", "0.002", "--verbose"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    (row,) = re.findall(r" 1 9\.20 (1\.\d+) (6\.\d+) 0\.07 (2\.\d+) 0\.03", text)
    start_up, compute, drain = row
    assert f"{compute} waiting for ops on other ranks, {drain} after the last op, {start_up} before the first" in text


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "zbv -p 4 -m 8",
            "No order of ops on this placement is shorter than 25.5; with 16 microbatches a microbatch takes",
        ),
        ("gpipe -p 4 -m 16 --memory-limit 6act", "This is over its memory limit. Recommended: train with"),
        ("gpipe -p 4 -m 16 --memory-limit 0.1act", "Nothing tried here is within it"),
        ("interleaved-1f1b -p 2 -m 2 -v 8 -f 1 2", "Recommended:"),
        ("zb-auto -p 4 -m 8 --memory-limit 2act", "Recommended: train with v-min"),
    ],
)
def test_the_last_sentence_says_what_to_do(capsys, line, sentence):
    main(["explain", *line.split(), "--times-per", "rank", "--pad-times"])
    assert sentence in " ".join(capsys.readouterr().out.split())


def test_a_page_of_very_many_ops_does_without_reasons(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "MOST_EXPLAINED", 10)
    save(pipeplan.simulate("1f1b", ranks=4, microbatches=2), tmp_path / "page.html")
    assert '"gaps":null' in (tmp_path / "page.html").read_text()


def test_the_windows_of_the_bound_are_found_on_the_timeline(capsys):
    answer = pipeplan.explain("zb-auto", ranks=4, microbatches=8, memory_limit="3act")
    assert [(entry.kind, entry.start, entry.end) for entry in answer.windows] == [
        ("first", 0.0, 7.0),
        ("trip", 9.0, 19.0),
        ("last", 25.0, 37.0),
    ]
    assert [entry.idle for entry in answer.windows] == [4.0, 3.0, 5.0]
    told = answer.to_dict()["explain"]["windows"]
    assert told[1] == {
        "rank": 0, "kind": "trip", "start": 9.0, "end": 19.0, "idle": 3.0, "least_length": 7.0, "least_idle": 0.0
    }  # fmt: skip
    answer.print(verbose=True)
    sentence = " ".join(capsys.readouterr().out.split())
    assert (
        "takes less than 30.0: rank 0 holds 3 microbatches at most, and idles 6.0 or more in 3 windows of time"
        in sentence
    )
    assert answer.sentences[-1].startswith(
        "No schedule on this placement, without slices, within the memory limit, takes less than 30.0: rank 0 holds"
    )
    assert "from the last forward on 25.0 to 37.0" in sentence


def test_the_picture_of_an_explanation_marks_the_windows_and_says_the_bound(tmp_path):
    answer = pipeplan.explain("zb-auto", ranks=4, microbatches=8, memory_limit="3act")
    (view,) = answer._views()
    assert view.windows is not None
    assert view.windows.kind == ("first", "trip", "last")
    assert view.windows.idle.tolist() == [4.0, 3.0, 5.0]
    assert view.bound.startswith(
        "no schedule on this placement, without slices, within the memory limit, takes less than 30: the work of rank 0"
    )
    assert view_of_result(pipeplan.simulate("zb-auto", ranks=4, microbatches=8, memory_limit="3act")).windows is None
    answer.save(tmp_path / "windows.svg")
    answer.save(tmp_path / "windows.html")
    assert '"windows":{"lane":[0,0,0]' in (tmp_path / "windows.html").read_text()


def test_a_message_behind_another_one_on_its_stream_is_named(tmp_path):
    path = tmp_path / "front.csv"
    path.write_text(
        "0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0B0,0RECV_B1,0B1\n1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n"
    )
    explained = pipeplan.explain(path, communication="streams", p2p_time=0.5)
    wait = explained.waits[1]
    assert wait is not None
    assert (wait.notation, wait.start, wait.end, wait.behind) == ("1F1", 4.5, 5.5, "1SEND_B0")
    assert (
        "is before 1F1, whose input is on its way from rank 0, behind a send of microbatch 0." in explained.sentences[2]
    )
    assert explained.explain.reasons["queue"][1] == 0.5
    per_edge = pipeplan.explain(path, communication="streams", streams="edge", p2p_time=0.5)
    assert per_edge.explain.reasons["queue"][1] == 0
