"""The trainer is part of a plan's question: every command gives a trainer the same plan, and names whose plan it is."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

import pipeplan
from pipeplan.answers.parts import figure
from pipeplan.cli.process import main
from pipeplan.extensions.planning import Configuration
from pipeplan.extensions.planning.answers.one_configuration import look, trainer_of
from pipeplan.extensions.planning.choice.request import software_of_plans
from pipeplan.extensions.planning.choice.trainers import requests_of, without_trainer
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.trainers import plan_trainers
from pipeplan.extensions.planning.workload import model
from pipeplan.foundation.errors import InfeasibleError, ShapeError
from tests.extensions.planning.requests import request
from tests.extensions.planning.workload.test_config_json import CONFIGS

QUESTION: dict[str, Any] = {"global_batch": 16, "sequence": 4096, "seconds": 3, "workers": 1}
WORDS = "plan --model llama3-8b --cluster h100-sxm:8x1 --global-batch 16 --sequence 4096 --seconds 3 --workers 1"
FIX = ["tp=2", "dp=4"]
TRAINERS = ("megatron", "bridge", "torchtitan")


def planned(*fix: str, **options: Any) -> Any:
    return pipeplan.plan("llama3-8b", "h100-sxm:8x1", fix=[*FIX, *fix], **QUESTION | options)


@pytest.fixture(scope="module")
def plain():
    return planned()


def test_a_plan_is_the_best_of_the_trainers_own_plans(plain, capsys):
    steps = {own.trainer: own.step_time_s for own in plain.by_trainer}
    assert tuple(steps) == TRAINERS
    assert plain.best.step_time == min(steps.values()) == steps[plain.trainer]
    assert tuple(plain.best.flags) == (*TRAINERS, "pipeplan")
    record = plain.to_dict()["model"]
    assert (record["name"], record["layers"]) == ("llama3-8b", 32)
    assert record["parameters"] == record["active_parameters"] == 8_030_261_248
    for own in plain.by_trainer:
        flags = plain.best.flags[own.trainer]
        assert (flags.step_time_s, flags.peak_memory_gib, flags.fit) == (own.step_time_s, own.peak_memory_gib, own.fit)
        assert flags.software == software_of_plans(plan_trainers()[own.trainer], cluster("h100-sxm:8").gpu)
        assert flags.release == plan_trainers()[own.trainer].latest
    shown = plain.best.flags["pipeplan"]
    assert (shown.step_time_s, shown.configuration) == (plain.best.step_time, plain.best.words)
    plain.print()
    output = " ".join(capsys.readouterr().out.split())
    others = [f"{name} {figure(step)} s" for name, step in steps.items() if name != plain.trainer]
    assert f"{plain.trainer} (others' own plans: {', '.join(others)})" in output


def assert_on_a_screen(plan: pipeplan.Plan, capsys: Any, monkeypatch: Any) -> None:
    """The headline is first, and 40 lines are enough at either width."""
    for width in (80, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        plan.print()
        output = capsys.readouterr().out
        assert " ".join(output.split()).startswith(plan.headline)
        assert len(output.splitlines()) <= 40
        assert max(map(len, output.splitlines())) <= width


def test_a_found_plan_fits_on_a_screen(plain, capsys, monkeypatch):
    assert_on_a_screen(plain, capsys, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "machines", "batch"),
    [
        ("llama3-70b", "h100-sxm:8x8", 128),
        ("deepseek-v3", "h800-sxm:8x64", 2048),
        ("qwen3-235b-a22b", "h100-sxm:8x16", 256),
    ],
)
def test_a_plan_of_a_large_model_fits_on_a_screen(name, machines, batch, capsys, monkeypatch):
    plan = pipeplan.plan(name, machines, global_batch=batch, sequence=4096, seconds=2, workers=1)
    assert plan.assumptions
    assert_on_a_screen(plan, capsys, monkeypatch)


def test_every_command_gives_a_trainer_the_same_plan(plain, address, capsys):
    requested = {"model": "llama3-8b", "cluster": "h100-sxm:8x1", "global_batch": 16, "sequence": 4096, "seconds": 3.0}
    answer = httpx.post(f"{address}/api/plan", json={"settings": requested | {"fix": FIX}}, timeout=180)
    page = json.loads(answer.text.splitlines()[-1])["plan"]
    assert page["trainer"] == plain.trainer
    for trainer in (*TRAINERS, "pipeplan"):
        flags = plain.best.flags[trainer]
        own = planned(f"trainer={trainer}")
        assert own.flags[trainer].text == flags.text, trainer
        assert own.best.step_time == flags.step_time_s, trainer
        assert own.best.peak_memory_gib == flags.peak_memory_gib, trainer
        assert own.trainer == (plain.trainer if trainer == "pipeplan" else trainer)
        assert page["best"]["flags"][trainer]["text"] == flags.text, trainer
        assert page["best"]["flags"][trainer]["step_time_s"] == pytest.approx(flags.step_time_s)
        assert [plan.trainer for plan in own.by_trainer] == ([trainer] if trainer in TRAINERS else list(TRAINERS))
        if trainer in ("megatron", "torchtitan"):
            continue  # one trainer and the plan of any are enough for the shell
        assert main([*WORDS.split(), "--fix", *FIX, "--flags", trainer]) == 0
        out, err = capsys.readouterr()
        assert out.rstrip("\n") == flags.text.rstrip("\n"), trainer
        assert err.startswith(f"{own.trainer}: {own.headline}")
    assert main([*WORDS.split(), "--fix", *FIX, "--json"]) == 0
    shell = json.loads(capsys.readouterr().out)
    assert {name: flags["text"] for name, flags in shell["best"]["flags"].items()} == {
        name: flags.text for name, flags in plain.best.flags.items()
    }


def test_a_trainer_for_which_nothing_is_possible_says_so():
    mixed = pipeplan.plan("llama3-8b", "h100-sxm:8x1", fix={"pp": 2, "schedule": "zbv"}, **QUESTION)
    assert (mixed.trainer, list(mixed.chosen.flags)) == ("torchtitan", ["torchtitan", "pipeplan"])
    reasons = {own.trainer: own.reason for own in mixed.by_trainer}
    assert "no valid configuration" in reasons["megatron"]
    assert reasons["torchtitan"] == ""
    with pytest.raises(InfeasibleError, match="no plan for megatron: no valid configuration"):
        mixed.flags_for("megatron-lm")


def test_a_trainer_that_cannot_build_the_model_has_no_plan(capsys):
    hybrid = pipeplan.plan(str(CONFIGS / "Bamba-9B-v1.json"), "h100-sxm:8x1", **QUESTION)
    (reason,) = [own.reason for own in hybrid.by_trainer if own.trainer == "bridge"]
    assert reason.startswith("Megatron-Bridge's layout has one kind of layer")
    assert hybrid.trainer != "bridge"
    hybrid.print()
    short = " ".join(capsys.readouterr().out.split())
    assert "bridge none" in short
    assert "Megatron-Bridge's layout" not in short
    hybrid.print(verbose=True)
    assert "bridge none (Megatron-Bridge's layout" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(ShapeError, match="one kind of layer"):
        pipeplan.plan(str(CONFIGS / "Bamba-9B-v1.json"), "h100-sxm:8x1", fix={"trainer": "bridge"}, **QUESTION)


def test_a_schedule_that_no_trainer_runs_is_for_pipeplan():
    only = pipeplan.plan("llama3-8b", "h100-sxm:8x1", fix={"pp": 2, "schedule": "zb-h1"}, **QUESTION)
    assert (only.trainer, list(only.chosen.flags)) == ("pipeplan", ["pipeplan"])


def test_another_trainer_cannot_be_fixed_beside_flags(capsys):
    words = [*WORDS.split(), "--flags", "megatron", "--fix"]
    assert main([*words, "trainer=torchtitan"]) == 2
    assert "--flags megatron and --fix trainer=torchtitan exclude each other" in capsys.readouterr().err


def test_flags_of_a_chosen_configuration_have_the_figures_of_each_trainer():
    shape, machines = model("llama3-8b"), cluster("h100-sxm:8x1")
    requested = Configuration(tensor=2, data=4, global_batch=16, sequence=4096, software="megatron-bridge-26.04")
    chosen, _ = look(shape, machines, requested)
    assert chosen.flags["bridge"].step_time_s == chosen.step_time
    for trainer in ("megatron", "torchtitan"):
        usual = software_of_plans(plan_trainers()[trainer], machines.gpu)
        own = Configuration(tensor=2, data=4, global_batch=16, sequence=4096, software=usual)
        assert chosen.flags[trainer].step_time_s == pytest.approx(look(shape, machines, own)[0].step_time)
    sliced = Configuration(pipeline=2, data=4, global_batch=16, sequence=4096, schedule="zb-h1")
    assert look(shape, machines, sliced)[0].flags["torchtitan"].step_time_s is None


def test_the_trainers_in_question():
    every = requests_of(request())
    assert {name: entry.fixed["software"] for name, entry in every.items()} == {
        "megatron": ("megatron-core-overlapped",),
        "bridge": ("megatron-bridge-26.04+32-bit-gradients",),
        "torchtitan": ("torchtitan",),
    }
    assert list(requests_of(request(fix={"software": "torchtitan-eager"}))) == ["torchtitan"]
    assert list(requests_of(request(fix={"software": "megatron-bridge"}))) == ["bridge", "megatron"]
    assert list(requests_of(request(fix={"trainer": "torchtitan,bridge"}))) == ["torchtitan", "bridge"]
    assert list(requests_of(request(fix={"trainer": "pipeplan"}))) == list(every)
    assert without_trainer(request(fix={"trainer": "pipeplan", "tp": 2})).fixed == {"tensor": (2,)}
    assert without_trainer(request(fix={"trainer": "pipeplan", "software": "nemo"})).fixed == {"software": ("nemo",)}


def test_the_trainer_of_a_software():
    names = {
        "megatron-core": "megatron",
        "megatron-bridge": "bridge",
        "megatron-core+16-bit-gradients": "megatron",
        "hai-llm": "",
    }
    for software, trainer in names.items():
        assert trainer_of(Configuration(global_batch=1, sequence=1, software=software)) == trainer, software
