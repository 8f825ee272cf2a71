"""Every option of every command matters at every door, or is refused in words.

``SETTINGS_THAT_MATTER`` has a question for each setting of shape and costs, and ``OPTIONS_THAT_MATTER`` for each further
option of a command, whose answer the option changes. The options are those that the commands declare: a new one without a
question fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pipeplan
from pipeplan.cli import main
from pipeplan.cli.app import command_line
from pipeplan.costs import SETTINGS, Settings
from pipeplan.extensions.web.mcp.tools import answer_of
from pipeplan.foundation.errors import PipeplanError
from pipeplan.model import parse_schedule
from tests.cli.shell import words_of
from tests.corpus.make import CALIBRATION, CONFIGURATION, LAUNCH

SHAPE: dict[str, Any] = {"ranks": 2, "microbatches": 4}
DATA: dict[str, Any] = {"unshard_times": 1.0, "reduce_times": 3.0}
LENGTHS = {"lengths": [100.0, 300.0, 100.0, 100.0]}
LAYERS = [
    {"forward": float(2 + number), "backward_input": 2.0, "backward_weight": 1.0, "activation_bytes": 4.0}
    for number in range(6)
]

_EXPERTS = [{"compute": 0.5}, {"all_to_all": 1.0}, {"compute": 1.5}]
SEGMENTS = {"forward": _EXPERTS, "backward_input": _EXPERTS, "backward_weight": [{"compute": 0.5}, {"compute": 1.0}]}


@dataclass(frozen=True)
class Question:
    """A schedule, settings, and the value of one more that changes the answer."""

    value: Any
    schedule: str = "1f1b"
    settings: dict[str, Any] = field(default_factory=dict)


Q = Question

SETTINGS_THAT_MATTER: dict[str, Question] = {
    "ranks": Q(3),
    "microbatches": Q(6),
    "chunks": Q(3, "interleaved-1f1b"),
    "stages": Q(3, settings={"ranks": None}),
    "forward_times": Q([1.0, 3.0]),
    "backward_times": Q([1.0, 3.0]),
    "backward_input_times": Q(3.0, "zb-h1"),
    "backward_weight_times": Q(3.0, "zb-h1"),
    "overlap_times": Q(2.5, "dualpipev"),
    "segments": Q(SEGMENTS, "1f1b-overlap"),
    "pair_slowdown": Q(1.5, "1f1b-overlap", {"segments": SEGMENTS}),
    "delayed_weights": Q(True, "1f1b-overlap", {"segments": SEGMENTS}),
    "recompute": Q("0"),
    "recompute_times": Q(3.0, settings={"recompute": "all"}),
    "offload": Q("all", "gpipe", {"offload_times": 0.5}),
    "offload_times": Q(1.5, "gpipe", {"offload": "all", "offload_times": 0.5}),
    "offload_bandwidth": Q(4.0, "gpipe", {"activation_bytes": 8.0, "offload": "all", "offload_bandwidth": 16.0}),
    "times_per": Q("stage", "zbv"),
    "pad_times": Q(True, "zbv", {"forward_times": [1.0, 3.0]}),
    "time_unit": Q("ms"),
    "costs_name": Q("mine"),
    "layers": Q(LAYERS),
    "layers_per_stage": Q([1, 5], settings={"layers": LAYERS}),
    "unshard_times": Q(5.0),
    "reduce_times": Q(5.0),
    "sharding": Q("megatron", "interleaved-1f1b", DATA),
    "max_active_stages": Q(1, "interleaved-1f1b", DATA),
    "unshard_lookahead": Q("1", "interleaved-1f1b", DATA),
    "p2p_time": Q(0.5),
    "p2p_bytes": Q(4.0, settings={"p2p_bandwidth": 8.0}),
    "p2p_bandwidth": Q(8.0, settings={"p2p_bytes": 4.0}),
    "communication": Q("blocking", settings={"p2p_time": 0.5}),
    "streams": Q("edge", "zbv", {"p2p_time": 2.0, "communication": "streams"}),
    "machine": Q("megatron-a100", settings={"time_unit": "ms"}),
    "op_gap": Q(0.2),
    "message_time": Q(0.2),
    "step_time": Q(5.0),
    "memory_limit": Q("1act"),
    "activation_bytes": Q(8.0),
    "weight_activation_bytes": Q(2.0, "zb-h1", {"activation_bytes": 8.0}),
    "recompute_bytes": Q(2.0, settings={"activation_bytes": 8.0, "recompute": "all"}),
    "offload_bytes": Q(2.0, "gpipe", {"activation_bytes": 8.0, "offload": "all", "offload_bandwidth": 16.0}),
    "static_bytes": Q(5.0, settings={"activation_bytes": 8.0}),
    "parameter_bytes": Q(5.0, settings={"activation_bytes": 8.0} | DATA),
    "gradient_bytes": Q(5.0, settings={"activation_bytes": 8.0} | DATA),
    "microbatch_factors": Q([1.0, 2.0, 1.0, 3.0]),
    "lengths": Q([100.0, 300.0, 100.0, 100.0]),
    "reference_length": Q(100.0, settings=LENGTHS),
    "attention_share": Q(0.5, settings=LENGTHS),
    "attention_model": Q("llama3-8b", settings={"lengths": [8192.0, 65536.0, 8192.0, 8192.0]}),
    "group_size": Q(3, "interleaved-1f1b", {"microbatches": 6}),
    "slices": Q(3, "seq1f1b"),
    "slice_attention": Q(0.5, "seq1f1b"),
    "variant": Q("direct", "bitpipe", {"ranks": 4, "microbatches": 8}),
}

EIGHT = {"activation_bytes": 8.0}
WITHIN = EIGHT | {"memory_limit": 21}
"""Settings with which bytes matter to a check."""

OTHERWISE: dict[tuple[str, str], Question] = {
    ("search", "slice_attention"): Q(0.5, settings={"slices": 2}),
    ("check", "static_bytes"): Q(5.0, settings=EIGHT | {"memory_limit": 8}),
    ("check", "activation_bytes"): Q(16.0, settings=WITHIN),
    ("check", "weight_activation_bytes"): Q(2.0, "zb-h1", EIGHT | {"memory_limit": 8}),
    ("check", "recompute_bytes"): Q(8.0, "gpipe", WITHIN | {"recompute": "all"}),
    ("check", "offload_bytes"): Q(1.0, "gpipe", WITHIN | {"offload": "all", "offload_times": 0.5}),
    ("check", "parameter_bytes"): Q(9.0, settings=WITHIN),
    ("check", "gradient_bytes"): Q(9.0, settings=WITHIN),
    ("check", "pad_times"): Q(True, "zbv", {"activation_bytes": [1.0, 8.0], "memory_limit": 12}),
    ("check", "offload_times"): Q(5.0, "gpipe", {"offload": "all", "offload_times": 0.5}),
    ("check", "unshard_lookahead"): Q(
        "1", "interleaved-1f1b", DATA | {"activation_bytes": 8.0, "parameter_bytes": 5.0, "memory_limit": 10}
    ),
    ("check", "variant"): Q("megatron", "interleaved-1f1b", {"ranks": 4, "microbatches": 6, "memory_limit": "1.5act"}),
    ("check", "communication"): Q("blocking", "crossing", {"microbatches": 2}),
    ("check", "streams"): Q("edge", "crossing", {"microbatches": 2, "communication": "streams"}),
    ("check", "sharding"): Q("none", settings=DATA),
    ("check", "layers"): Q(LAYERS, settings={"memory_limit": 21}),
    ("check", "layers_per_stage"): Q([1, 5], settings={"memory_limit": 30, "layers": LAYERS}),
    ("check", "group_size"): Q(3, "interleaved-1f1b", {"microbatches": 6, "memory_limit": "1act"}),
    ("check", "microbatch_factors"): Q([1.0, 2.0, 1.0, 3.0], settings={"memory_limit": "1.5act"}),
    ("check", "lengths"): Q([100.0, 300.0, 100.0, 100.0], settings={"memory_limit": "1.5act"}),
    ("check", "reference_length"): Q(100.0, settings=LENGTHS | {"memory_limit": "1.5act"}),
    ("diff", "offload"): Q("all", "gpipe", {"offload_times": 1.5}),
    ("diff", "offload_bytes"): Q(2.0, "gpipe", EIGHT | {"offload": "all", "offload_bandwidth": 5.0}),
    ("diff", "reduce_times"): Q(3.0, "interleaved-1f1b", {"unshard_times": 6.0, "max_active_stages": 1}),
    ("diff", "sharding"): Q("none", settings=DATA),
    ("diff", "activation_bytes"): Q(12.0, "zb-auto", EIGHT | {"memory_limit": 16}),
    ("diff", "weight_activation_bytes"): Q(2.0, "zb-auto", EIGHT | {"memory_limit": 10}),
    ("diff", "static_bytes"): Q(5.0, "zb-auto", EIGHT | {"memory_limit": 16}),
    ("diff", "parameter_bytes"): Q(5.0, "zb-auto", EIGHT | DATA | {"memory_limit": 10}),
    ("diff", "gradient_bytes"): Q(5.0, "zb-auto", EIGHT | DATA | {"memory_limit": 16}),
}
"""Questions of commands to which a setting matters in other cases: by command and setting."""


PLACEMENTS = {"interleaved-1f1b": "loop", "zbv": "v", "dualpipev": "v", "bitpipe": "bidirectional-v"}


def _by_search(search: Callable[..., Any]) -> Callable[..., Any]:
    """Return a search that answers with what is published, on the placement of a schedule."""

    def searched(schedule: str, **settings: Any) -> Any:
        return search(placement=PLACEMENTS.get(schedule, "linear"), evaluations=0, workers=1, **settings)

    return searched


def _exported(schedule: str, **settings: Any) -> list[str]:
    return [str(pipeplan.export(schedule, to=name, **settings)) for name in ("trace", "costs")]


def _compared(schedule: str, **settings: Any) -> Any:
    """Compare a plan with a run of the same ops, whose times no setting changes."""
    shape = {
        name: settings[name] for name in ("ranks", "stages", "microbatches", "chunks", "slices") if name in settings
    }
    return pipeplan.diff(schedule, pipeplan.simulate(schedule, **shape).timeline, **settings)


def _checked(schedule: str, **settings: Any) -> Any:
    return pipeplan.check(ORDERS.get(schedule, schedule), **settings)


CROSSING = """
0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1
"""
ORDERS = {"crossing": parse_schedule(CROSSING)}
"""Schedules in which two messages meet, by name."""


ANSWERS: dict[str, Callable[..., Any]] = {
    "simulate": pipeplan.simulate,
    "compare": pipeplan.compare,
    "explain": pipeplan.explain,
    "search": _by_search(pipeplan.search),
    "pareto": _by_search(lambda **options: pipeplan.pareto(points=2, **options)),
    "check": _checked,
    "export": _exported,
    "diff": _compared,
}
"""Commands that take the settings of shape and costs, as functions of a schedule and settings."""


def document(answer: Any) -> Any:
    """Return what an answer says, without the time that it took: its record, and the costs that its pictures name."""
    if isinstance(answer, list):
        return answer
    pictures = (
        [answer.front_view().about] if hasattr(answer, "front_view") else [view.costs for view in answer._views()]
    )
    return _timeless(answer.to_dict()), pictures


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(part) for name, part in value.items() if name != "seconds"}
    return [_timeless(part) for part in value] if isinstance(value, list | tuple) else value


LABELS = {("check", "costs_name"), ("check", "time_unit"), ("diff", "costs_name"), ("export", "costs_name")}
"""Labels of settings that commands share, which these commands do not show: by command and setting."""


@cache
def _answer(command: str, schedule: str, settings: str) -> Any:
    """Return what a command says on settings, given as JSON, or why it refuses them."""
    try:
        return document(ANSWERS[command](schedule, **json.loads(settings)))
    except PipeplanError as error:
        return str(error)


@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=[pytest.mark.slow] * (name in ("search", "pareto"))) for name in ANSWERS]
)
def test_every_setting_changes_the_answer_or_is_refused(command):
    ignored = []
    for name, usual in SETTINGS_THAT_MATTER.items():
        question = OTHERWISE.get((command, name)) or OTHERWISE.get(
            ("search" if command == "pareto" else command, name), usual
        )
        settings = {other: value for other, value in (SHAPE | question.settings).items() if value is not None}
        without, with_it = (
            _answer(command, question.schedule, json.dumps(given))
            for given in (settings, settings | {name: question.value})
        )
        if without == with_it and not isinstance(with_it, str):
            ignored.append(name)
    ignored = [name for name in ignored if (command, name) not in LABELS]
    assert not ignored


def test_every_setting_has_a_question():
    assert set(SETTINGS_THAT_MATTER) == set(SETTINGS)


def _settings_of(name: str, question: Question) -> dict[str, Any]:
    settings = SHAPE | question.settings | {name: question.value}
    return {other: value for other, value in settings.items() if value is not None}


def _without_words(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without what it says about assumed times, none of which is assumed in a file of costs."""
    return {name: value for name, value in result.items() if name not in ("warnings", "notes")}


def test_every_door_gives_the_same_answer(tmp_path, capsys):
    """A keyword, a config file, a file of costs, a command line, and a call of a tool."""
    file, costs = tmp_path / "config.json", tmp_path / "saved.costs.json"
    for number, (name, question) in enumerate(SETTINGS_THAT_MATTER.items()):
        settings = _settings_of(name, question)
        answer = pipeplan.simulate(question.schedule, **settings)
        file.write_text(json.dumps(settings))
        assert pipeplan.simulate(question.schedule, config=file).to_dict() == answer.to_dict(), name
        folder = tmp_path / str(number)
        folder.mkdir()
        words = words_of(settings, folder)
        assert main(["simulate", question.schedule, "--json", *words]) == (0 if answer.fits else 1), name
        assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(answer.to_dict())), name
        call = {"schedule": question.schedule, "settings": settings, "detail": True}
        assert answer_of("simulate", call, 60) == answer.to_dict(), name
        answer.save(costs)
        again = pipeplan.simulate(question.schedule, config=costs)
        assert _without_words(again.to_dict()) == _without_words(answer.to_dict()), name


def test_a_request_of_the_web_app_has_the_same_settings():
    pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")
    from pipeplan.extensions.web.requests import CompareIn, parsed

    for name, question in SETTINGS_THAT_MATTER.items():
        settings = _settings_of(name, question)
        assert parsed(CompareIn, json.dumps({"settings": settings})).costs() == Settings(**settings), name


TABLES = {name: [[1.0, 2.0, 1.0, 3.0], [2.0, 1.0, 1.0, 1.0]] for name in ("forward", "backward_input", "size")}


@pytest.mark.parametrize(
    ("name", "value", "schedule"),
    [
        *(
            (name, value, schedule)
            for schedule in ("1f1b", "zbv")
            for name, value in (
                ("microbatch_factors", [[1.0, 2.0, 1.0, 3.0], [2.0, 1.0, 1.0, 1.0]]),
                ("microbatch_factors", TABLES | {"backward_weight": [1.0, 2.0, 1.0, 1.0]}),
                ("lengths", [[100.0, 50.0], 300.0, 100.0, 100.0]),
                ("forward_times", [1.0, 3.0]),
                ("activation_bytes", ["1MiB", 5.0]),
            )
        ),
        ("overlap_times", [[4.0, 3.5], [3.0, 3.5]], "1f1b-overlap"),
        ("segments", [SEGMENTS, {**SEGMENTS, "forward": [{"compute": 1.0}, {"all_gather": 0.5}]}], "1f1b-overlap"),
    ],
)
def test_tables_and_lists_per_rank_pass_every_door(name, value, schedule, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(SETTINGS_THAT_MATTER, name, Question(value, schedule))
    for other in SETTINGS.keys() - {name}:
        monkeypatch.delitem(SETTINGS_THAT_MATTER, other)
    test_every_door_gives_the_same_answer(tmp_path, capsys)
    test_a_request_of_the_web_app_has_the_same_settings()


def test_a_list_of_one_value_is_that_value():
    one, listed = (pipeplan.simulate("zbv", ranks=1, microbatches=4, forward_times=times) for times in (3, [3]))
    assert listed.to_dict() == one.to_dict()


SMALL = "-p 3 -m 4"
PLAN = (
    "plan --model llama3-8b --cluster h100-sxm:8x1 --global-batch 16 --sequence 2048 --json --workers 1 --seconds 0.2"
)
FIXED = "--fix tp=1 pp=2 micro=1 schedule=1f1b"
SEARCH = f"search {SMALL} --placement v --evaluations 60 --workers 1 --json"
REVIEW = "review bare.sh --model llama3-8b --cluster h100-sxm:8x1 --json"
HARD = "search -p 4 -m 7 --placement v --evaluations 60 --workers 1 --json --memory-limit 2.5act -f 3 -bw 5"
FRONT = f"pareto {SMALL} --placement v --evaluations 60 --points 2 --workers 1 --json"


def _shown(line: str) -> dict[str, tuple[str, str]]:
    return {"all": (line, "--all"), "verbose": (line, "--verbose")}


def _written(line: str) -> dict[str, tuple[str, str]]:
    """Questions about the options of a command that reads a config file and writes its answer."""
    line = line.replace(" --json", "")
    return {
        "config": (f"{line} --json", "-c costs.yaml"),
        "theme": (f"{line} -o x.svg", "--theme dark"),
        "size": (f"{line} -o x.svg", "--size column"),
        "plain": (f"{line} -o x.svg", "--plain"),
        "no_visualization": (f"{line} -c drawn.yaml", "--no-visualization"),
        "output": (f"{line} --json", "-o x.svg"),
    }


OPTIONS_THAT_MATTER: dict[str, dict[str, tuple[str, str]]] = {
    "simulate": {
        **_written(f"simulate {SMALL}"),
        **_shown("simulate -p 12 -m 2 --no-visualization"),
    },
    "compare": {
        **_written(f"compare 1f1b {SMALL}"),
        "allow": (f"compare {SMALL} --json", "--allow slices"),
        **_shown(f"compare {SMALL} --no-visualization"),
        "columns": (f"compare 1f1b zbv {SMALL} --no-visualization", "--columns makespan"),
    },
    "explain": {
        **_written(f"explain 1f1b {SMALL}"),
        **_shown("explain -p 12 -m 2"),
        "allow": (f"explain 1f1b {SMALL} --json", "--allow slices"),
    },
    "search": {
        **_written(SEARCH),
        **_shown(SEARCH.removesuffix(" --json")),
        "allow": (SEARCH, "--allow slices"),
        "placement": (SEARCH, "--placement linear"),
        "evaluations": (HARD, "--evaluations 0"),
        "seed": (HARD, "--seed 1"),
        "leave": (SEARCH, "--leave split"),
        "objective": (SEARCH, "--objective span"),
        "start": (SEARCH, "--start zbv"),
        "decide": (f"{SEARCH} --memory-limit 1.5act", "--decide recompute"),
    },
    "pareto": {
        **_written(FRONT),
        **_shown("pareto -p 13 -m 13 --points 30 --evaluations 1 --placement linear --workers 1"),
        "allow": (FRONT, "--allow slices"),
        "placement": (FRONT, "--placement linear"),
        "evaluations": (f"{FRONT} --seed 3", "--evaluations 0"),
        "leave": (FRONT, "--leave split"),
        "objective": (FRONT, "--objective span"),
        "start": (FRONT, "--start nothing.csv"),
        "decide": (FRONT, "--decide recompute"),
        "points": (FRONT, "--points 5"),
        "seed": (FRONT.replace("-m 4", "-m 7 -f 3 -bw 5"), "--seed 2"),
    },
    "check": {
        "trainer": ("check dualpipe -p 2 -m 4 --json", "--for pytorch"),
        "trainer_version": (f"check 1f1b {SMALL} --for pytorch --json", "--trainer-version 1.0"),
        "config": (f"check 1f1b {SMALL} --json", "-c limit.yaml"),
    },
    "export": {
        "to": ("export 3+4+3 --to megatron", "--to torchtitan"),
        "theme": ("export order.csv -o x.svg", "--theme dark"),
        "size": ("export order.csv -o x.svg", "--size column"),
        "plain": ("export order.csv -o x.svg", "--plain"),
        "mtp_layers": (f"export 1f1b {SMALL} --to megatron --layers-per-stage 2,2,2", "--mtp-layers 1"),
        "microbatch_size": (f"export 1f1b {SMALL} --to megatron", "--microbatch-size 2"),
        "sequence_length": (f"export 1f1b {SMALL} --to torchtitan", "--sequence-length 4096"),
        "data_parallel": (f"export 1f1b {SMALL} --to megatron --microbatch-size 2", "--data-parallel 4"),
        "csv": ("export zbv -p 2 -m 4 --to torchtitan", "--csv other.csv"),
        "trainer_version": (f"export 1f1b {SMALL} --to megatron", "--trainer-version 0.1"),
        "split_backward": (f"export 1f1b {SMALL} --to torch-csv", "--split-backward"),
        "retime": ("export waves.csv -o x.csv", "--retime"),
        "merge_backward": ("export split.csv -o x.csv", "--merge-backward"),
        "config": (f"export 1f1b {SMALL} --to trace", "-c costs.yaml"),
    },
    "diff": {
        **_written("diff 1f1b run.json"),
        "configuration": ("diff 1f1b run.json", "--configuration plan.yaml"),
        "calibration": ("diff 1f1b run.json", "--calibration x.yaml"),
        "all": ("diff zb-h1 long.json", "--all"),
        "verbose": ("diff 1f1b run.json", "--verbose"),
    },
    "plan": {
        "store": (f"{PLAN} {FIXED}", "--store kept.db"),
        "approximate": (f"{PLAN} {FIXED}".replace("llama3-8b", "unknown.json"), "--approximate"),
        "calibration": (f"{PLAN} {FIXED}", "--calibration calibration.yaml"),
        "runs": (f"{PLAN} {FIXED}", "--runs runs.yaml"),
        "model": (f"{PLAN} {FIXED}", "--model llama3.2-1b"),
        "cluster": (f"{PLAN} {FIXED}", "--cluster a100-sxm-80gb:8x1"),
        "global_batch": (f"{PLAN} {FIXED}", "--global-batch 32"),
        "sequence": (f"{PLAN} {FIXED}", "--sequence 4096"),
        "objective": (f"{PLAN} {FIXED}", "--objective cost"),
        "deadline": (f"{PLAN} {FIXED} --objective gpus --deadline 100", "--deadline 0.01"),
        "tokens": (f"{PLAN} {FIXED} --objective cost", "--tokens 1e9"),
        "price": (f"{PLAN} {FIXED} --objective cost", "--price 5"),
        "fix": (f"{PLAN} {FIXED}", "--fix tp=2 pp=2 micro=1 schedule=1f1b"),
        "allow": (PLAN, "--allow offload"),
        "memory_limit": (f"{PLAN} {FIXED}", "--memory-limit 30GiB"),
        "plain": (f"{PLAN} {FIXED} -o x.svg", "--plain"),
        "theme": (f"{PLAN} {FIXED} -o x.svg", "--theme dark"),
        "size": (f"{PLAN} {FIXED} -o x.svg", "--size column"),
        "all": (PLAN.replace(" --json", ""), "--all"),
        "verbose": (f"{PLAN} {FIXED}".replace(" --json", ""), "--verbose"),
        "flags": (f"{PLAN} {FIXED}".replace(" --json", ""), "--flags megatron"),
        "trainer_version": (f"{PLAN} {FIXED} --flags megatron".replace(" --json", ""), "--trainer-version 0.1"),
        "output": (f"{PLAN} {FIXED}", "-o x.yaml"),
    },
    "estimate": {
        "store": ("estimate plan.yaml --json", "--store kept.db"),
        "approximate": ("estimate unknown.yaml --json", "--approximate"),
        "calibration": ("estimate plan.yaml --json", "--calibration calibration.yaml"),
        "measured": ("estimate plan.yaml --json", "--measured 9s"),
        "all": ("estimate many.yaml", "--all"),
        "verbose": ("estimate plan.yaml", "--verbose"),
        "output": ("estimate plan.yaml --json", "-o x.json"),
    },
    "review": {
        "trainer": ("review train.sh --json", "--for torchtitan"),
        "trainer_version": ("review laid.sh --json", "--trainer-version 0.12"),
        "model": ("review train.sh --json", "--model llama3-8b"),
        "cluster": ("review train.sh --json", "--cluster h100-sxm:8x1"),
        "global_batch": (REVIEW, "--global-batch 16"),
        "sequence": (REVIEW, "--sequence 1234"),
        "trace": ("review train.sh --json", "--trace missing"),
        "output": ("review train.sh --json", "-o x.patch"),
        "strict": ("review unsaid.sh", "--strict"),
        "hook": ("review unsaid.sh", "--hook"),
        "annotate": ("review train.sh", "--annotate"),
        "all": ("review recipes.py", "--all"),
        "verbose": ("review train.sh", "--verbose"),
    },
}
"""For each option of a command that is no setting of shape and costs: a command line, and words that change its answer."""

LEFT_OUT: dict[str, str] = {
    "json": "the form of the answer, which other tests read",
    "debug": "the form of errors",
    "seconds": "a time budget: what is found within it depends on the machine",
    "workers": "the number of threads, which changes the time and not the answer",
}
"""Options without a question, and why."""

COMMANDS_LEFT_OUT = {
    "list": "lists what is built in",
    "profile": "measures a model: tests/extensions/training/runtime",
    "calibrate": "measures a GPU: tests/extensions/planning",
    "run": "trains a model: tests/extensions/training",
    "serve": "runs until it is stopped: tests/extensions/web",
    "mcp": "runs until it is stopped: tests/extensions/web/test_tool_server.py",
}
"""Commands whose further options have no question, and why."""


def test_every_further_option_has_a_question():
    app = command_line("all")
    for command in (
        name for name in app if not name.startswith("-") and name not in COMMANDS_LEFT_OUT and name != "help"
    ):
        declared = {part.field_info.name for part in app[command].assemble_argument_collection() if part.index is None}
        own = declared - (set(SETTINGS) - {"memory_limit"} if command == "plan" else set(SETTINGS)) - set(LEFT_OUT)
        assert set(OPTIONS_THAT_MATTER[command]) == own, command


UNKNOWN = json.loads(
    (Path(__file__).parent / "extensions" / "planning" / "workload" / "configs" / "Qwen3-30B-A3B.json").read_text()
) | {"model_type": "novel_moe"}
RECIPE = """
def number_{}_config():
    cfg = ConfigContainer()
    cfg.model.num_layers = 46
    cfg.model.pipeline_model_parallel_size = 4
    cfg.model.pipeline_model_parallel_layout = None
    return cfg
"""
FILES = {
    "recipes.py": "from megatron.bridge.training.config import ConfigContainer\n"
    + "".join(map(RECIPE.format, range(11))),
    "costs.yaml": "forward_times: 2\n",
    "limit.yaml": "memory_limit: 1act\n",
    "unsaid.sh": "pretrain_gpt.py --tensor-model-parallel-size 1 --pipeline-model-parallel-size 2\n",
    "drawn.yaml": "output: drawn.svg\n",
    "layers.json": json.dumps(LAYERS),
    "calibration.yaml": CALIBRATION,
    "plan.yaml": json.dumps(CONFIGURATION),
    "many.yaml": json.dumps({"rows": [CONFIGURATION] * 11}),
    "runs.yaml": json.dumps({"runs": [CONFIGURATION | {"measured": 9.0}]}),
    "unknown.json": json.dumps(UNKNOWN),
    "unknown.yaml": json.dumps(CONFIGURATION | {"model": "unknown.json"}),
    "train.sh": LAUNCH,
    "bare.sh": re.sub(r"--(global-batch-size|seq-length) \d+", "", LAUNCH),
    "laid.sh": f"{LAUNCH.strip()} --pipeline-model-parallel-layout 'Et*6|t*6L'",
}


def _with(words: str, more: str) -> str:
    """Return a command line with further words, which take the place of an option that it has already."""
    option, *_ = more.split()
    return re.sub(rf" {option}( [^-]\S*)*", "", words) + f" {more}"


def _said(words: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the exit code of a command line, what it prints, and the files that it leaves."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name, text in FILES.items():
        Path(name).write_text(text)
    pipeplan.simulate("1f1b", ranks=3, microbatches=4, forward_times=1.5).save("run.json")
    pipeplan.simulate("zb-h1", ranks=4, microbatches=4).save("long.json")
    pipeplan.simulate("1f1b", ranks=3, microbatches=4).save("order.csv")
    pipeplan.simulate("zb-h1", ranks=3, microbatches=4).save("split.csv")
    pipeplan.simulate("zbv", ranks=3, microbatches=4).save("waves.csv")
    code = main(words.split())
    printed, messages = capsys.readouterr()
    answer = _timeless(json.loads(printed)) if "--json" in words and printed else printed
    return (
        code,
        answer,
        messages if code == 2 else "",
        {path.name: path.suffix != ".db" and path.read_bytes() for path in Path().iterdir()},
    )


@pytest.mark.parametrize("command", [pytest.param(name, marks=pytest.mark.slow) for name in OPTIONS_THAT_MATTER])
def test_every_further_option_changes_the_answer_or_is_refused(command, tmp_path, capsys, monkeypatch):
    ignored, outputs = [], dict[str, Any]()
    for name, (words, more) in OPTIONS_THAT_MATTER[command].items():
        if words not in outputs:
            outputs[words] = _said(words, tmp_path / name, capsys, monkeypatch)
        without = outputs[words]
        with_it = _said(_with(words, more), tmp_path / f"{name}, set", capsys, monkeypatch)
        assert without[0] != 2 or name == "approximate", without
        if with_it[0] == 2:
            assert re.search(name.replace("_", "[-_ ]"), with_it[2]) or more.split()[-1] in with_it[2], with_it
        if without == with_it:
            ignored.append(name)
    assert not ignored
