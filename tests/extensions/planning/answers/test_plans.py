"""A plan as an answer: its table, its JSON, its files, and what it says where nothing fits."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from msgspec.structs import asdict

import pipeplan
from pipeplan.answers.parts import figure
from pipeplan.extensions.planning.answers.options import PlanOptions
from pipeplan.extensions.planning.answers.planned import seconds_of
from pipeplan.extensions.planning.answers.plans import plan_of
from pipeplan.extensions.planning.choice.sentences import headline_of, remarks_of, without_close_calls
from pipeplan.foundation.errors import InfeasibleError, UnknownNameError
from pipeplan.foundation.records import replaced
from tests.plans import ORDER, fitting_plan, missing_plan


@pytest.fixture
def plan():
    return fitting_plan()


@pytest.mark.parametrize("width", [80, 100])
def test_the_table_says_what_decides_on_one_screen(plan, capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    plan.print()
    output = capsys.readouterr().out
    words = " ".join(output.split())
    assert words.startswith(plan.headline)
    for part in (
        "llama3-8b on 16 h100-sxm (2 nodes of 8), 64 sequences of 8,192 tokens",
        "tp2 pp4 dp2 on 16 GPUs",
        "zb-h1, 32 microbatches of 1 sequence",
        "9.1% bubble",
        "another plan is best with: memory limit -10%",
        "a searched order takes ",
        "what to run: --flags megatron (or bridge, torchtitan, pipeplan: its own plan)",
        "--verbose (in Python: verbose=True) adds ",
    ):
        assert part in words, part
    assert f"({plan.best.tokens_per_second / 16:,.0f} per GPU)" in words
    assert len(output.splitlines()) <= 40
    assert max(map(len, output.splitlines())) <= width
    for detail in ("bandwidth between nodes -50%", "Pareto front ", "optimizer state"):
        assert detail not in words.replace("the Pareto front", ""), detail


def test_verbose_and_all_print_the_rest(plan, capsys):
    plan = replaced(plan, runners_up=4 * plan.runners_up)
    plan.print(verbose=True)
    output = " ".join(capsys.readouterr().out.split())
    details = (
        "bandwidth between nodes -50%",
        "Pareto front ",
        "optimizer state",
        "searched order: ",
        "error: most of",
    )
    assert [detail for detail in details if detail not in output] == []
    assert "--verbose" not in output
    assert "3 further configurations not listed: --all" in output
    plan.print(all=True, verbose=True)
    assert "not listed" not in capsys.readouterr().out


def test_the_headline_says_what_to_train_with_how_sure_and_what_it_gains(plan):
    low, high = map(figure, plan.best.error_bar.step_time_s)
    ahead = plan.runners_up[1].step_time / plan.best.step_time - 1
    assert plan.headline == (
        f"Train with tp2 pp4 dp2, zb-h1: {figure(plan.best.step_time)} s per step ({low}-{high} s likely), "
        f"{plan.best.peak_memory_gib:.1f} of 72.0 GiB; the fastest that fits, {ahead:.1%} ahead of interleaved-1f1b v2"
    )
    simpler = replaced(plan, simpler_because="unusual: more than 4 chunks per rank", given_up=0.021, fit="tight")
    words = "GiB (tight); the simplest within 3% of the fastest (the same with 1f1b: 2.1% faster, but unusual)"
    assert headline_of(simpler).endswith(words)
    assert headline_of(replaced(simpler, given_up=0.001)).endswith("the simplest within 3% of the fastest")


def test_a_prediction_has_four_digits():
    values = (14.2004, 0.394189, 4.146e-05, 0.0, 99.999)
    assert [figure(value) for value in values] == ["14.20", "0.3942", "0.000041", "0", "100.00"]


def test_a_budget_that_ended_early_is_said(plan, capsys):
    ended = replaced(plan, complete=False, optimality_gap=0.125, left_out=("ZeRO stage 0",))
    early = plan_of(replaced(ended, headline=headline_of(ended), remarks=remarks_of(ended)))
    early.print(verbose=True)
    output = " ".join(capsys.readouterr().out.split())
    assert (
        "the fastest found, 1.0% ahead of interleaved-1f1b v2; a longer search may find one up to 11% faster" in output
    )
    assert "the plan is within 12.5% of the best" in early.remarks[-1]
    assert "tried only if fixed (--fix) or allowed (--allow): ZeRO stage 0" in output
    assert early.to_dict()["optimality_gap"] == 0.125
    assert "out by bounds or not reached" in output
    plan.print()
    assert "longer search" not in capsys.readouterr().out


def test_a_search_that_ended_early_tells_no_close_winner(plan):
    ended = replaced(plan, complete=False, optimality_gap=0.125)
    close = [abs(runner.step_time / plan.best.step_time - 1) < 0.03 for runner in plan.runners_up]
    assert any(close)
    assert not all(close)
    reasons = [runner.lost_because for runner in without_close_calls(ended).runners_up]
    assert [reason == "about as fast (the budget ended)" for reason in reasons] == close
    assert without_close_calls(plan) is plan


def test_the_record_is_plain_json_and_adds_up(plan):
    record = json.loads(json.dumps(plan.to_dict()))
    assert next(iter(record.items())) == ("headline", plan.headline)
    assert set(record) >= {"best", "runners_up", "front", "sensitivity", "closest_miss", "counts", "complete"}
    best = record["best"]
    assert sum(best["breakdown"].values()) == pytest.approx(best["step_time_s"])
    assert set(best["flags"]) == {"megatron", "bridge", "torchtitan", "pipeplan"}
    assert all(entry["lost_because"] for entry in record["runners_up"])
    assert [entry["step_time_s"] for entry in record["front"]] == sorted(
        entry["step_time_s"] for entry in record["front"]
    )
    assert record["closest_miss"] is None
    assert record["cluster"]["gpus"] == 16


@pytest.mark.parametrize("ending", [".json", ".svg", ".csv"])
def test_it_is_saved_by_its_ending(plan, tmp_path, ending):
    path = tmp_path / f"plan{ending}"
    plan.save(path)
    assert path.stat().st_size > 500
    if ending == ".json":
        assert json.loads(path.read_text())["best"]["configuration"]["tensor"] == 2
    if ending == ".svg":
        assert "seconds per step" in path.read_text()
    if ending == ".csv":
        assert pipeplan.read_schedule(path) == plan.result.schedule


def test_its_configuration_is_what_estimate_takes(plan, tmp_path):
    plan.save(tmp_path / "best.yaml")
    (row,) = pipeplan.estimate(tmp_path / "best.yaml")
    assert row.estimate is not None
    figures = asdict(row.estimate)
    assert all(figures[name] == getattr(plan.best, name) for name in figures.keys() - {"assumed"})
    assert yaml.safe_load((tmp_path / "best.yaml").read_text())["tp"] == 2


def test_a_searched_order_is_written_for_pytorch(plan, tmp_path):
    plan.save(tmp_path / "better.searched.csv")
    assert pipeplan.read_schedule(tmp_path / "better.searched.csv") == ORDER
    assert plan.to_dict()["searched"]["optimality_gap"] == 0.02
    with pytest.raises(InfeasibleError, match="the search found no order better"):
        missing_plan().save(tmp_path / "none.searched.csv")


@pytest.mark.parametrize(("ending", "trainer"), [(".sh", "megatron"), (".torchtitan.sh", "torchtitan")])
def test_flags_are_written_with_the_files_that_they_name_beside_them(plan, tmp_path, ending, trainer):
    plan.save(tmp_path / f"train{ending}")
    flags = plan.flags_for(trainer)
    assert (tmp_path / f"train{ending}").read_text().rstrip("\n") == flags.text.rstrip("\n")
    for name, text in flags.files.items():
        assert (tmp_path / name).read_text() == text
    with pytest.raises(UnknownNameError, match="did you mean 'megatron'"):
        plan.flags_for("megatorn")


def test_a_frame_has_a_row_a_configuration(plan):
    frame = plan.to_frame()
    assert list(frame["is"]) == ["best", *["runner-up"] * 3, *["front"] * 2]
    assert frame["step_time_s"].min() == plan.best.step_time


def test_the_picture_compares_the_first_few(plan):
    view = plan.plan_view()
    assert [label for label, _ in view.times] == [
        "chosen: tp2 pp4 dp2\nzb-h1",
        "1: tp2 pp4 dp2\n1f1b",
        "2: tp2 pp4 dp2\ninterleaved-1f1b v2",
        "3: tp4 pp4\n1f1b",
    ]
    assert len(view.memory) == 4
    assert view.limit == 72
    assert view.front is not None
    assert len(view.front.points) == 2
    assert view.front.names[-1] == "chosen, fastest"
    assert view.front.limit == (72, "limit, 72.0 GiB")
    assert view.front.band == pytest.approx(1.03 * plan.best.step_time)


def test_where_nothing_fits_the_nearest_is_said_and_what_would(capsys, tmp_path):
    plan = missing_plan()
    plan.print()
    output = " ".join(capsys.readouterr().out.split())
    assert output.startswith(plan.headline)
    assert "No configuration fits in 1.0 GiB per GPU" in output
    assert "32 GPUs with pp8 would fit" in output
    record = plan.to_dict()
    assert record["best"] is None
    assert record["closest_miss"]["over_by_gib"] == pytest.approx(record["closest_miss"]["peak_memory_gib"] - 1)
    plan.save(tmp_path / "plan.png")
    assert "no configuration fits" in repr(plan)
    for name in ("best.yaml", "train.sh"):
        with pytest.raises(InfeasibleError, match="no configuration fits"):
            plan.save(tmp_path / name)
    assert plan.memory_limit_gib == 1


def test_fewer_gpus_than_there_are_make_a_configuration_of_their_own(tmp_path):
    requested: dict[str, Any] = {"global_batch": 16, "sequence": 4096, "seconds": 5, "workers": 1}
    answer = pipeplan.plan("llama3-8b", "h100-sxm:8x2", objective="gpus", deadline=60, **requested)
    best = answer.best
    assert best is not None
    assert best.configuration.gpus < 16
    assert best.step_time <= 60
    answer.save(tmp_path / "best.yaml")
    (row,) = pipeplan.estimate(tmp_path / "best.yaml")
    assert row.estimate is not None
    assert row.estimate.step_time == pytest.approx(best.step_time)
    assert answer.result.schedule.ranks == best.configuration.pipeline
    assert answer.flags["megatron"].text


def test_a_deadline_with_a_unit_is_a_time_for_all_tokens():
    options = PlanOptions(model="llama3-8b", cluster="h100-sxm:8x2", global_batch=16, sequence=1000, tokens=1.6e6)
    assert seconds_of(2.5, options) == 2.5
    assert seconds_of("1h", options) == 3600 / 100
