"""Every option of every command matters at every door, or is refused in words.

``SETTINGS_THAT_MATTER`` has a question for each setting of shape and costs, and ``OPTIONS_THAT_MATTER`` for each further option
of a command, whose answer the option changes. The options are those that the commands declare: a new one without a question
fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pipeplan
from pipeplan.cli import main
from pipeplan.cli.app import command_line
from pipeplan.cli.tools import tools, words_of
from pipeplan.costs import SETTINGS, Settings
from pipeplan.errors import InputError, PipeplanError
from pipeplan.model import parse_schedule

SHAPE: dict[str, Any] = {"ranks": 2, "microbatches": 4}
DATA: dict[str, Any] = {"unshard_times": 1.0, "reduce_times": 3.0}
LENGTHS = {"lengths": [100.0, 300.0, 100.0, 100.0]}
LAYERS = [
    {"forward": float(2 + number), "backward_input": 2.0, "backward_weight": 1.0, "activation_bytes": 4.0}
    for number in range(6)
]


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
    ("check", "offload_times"): Q(5.0, "gpipe", {"offload": "all", "offload_times": 0.5}),
    ("check", "unshard_lookahead"): Q(
        "1", "interleaved-1f1b", DATA | {"activation_bytes": 8.0, "parameter_bytes": 5.0, "memory_limit": 10}
    ),
    ("check", "variant"): Q("direct", "bitpipe", {"ranks": 4, "microbatches": 8, "memory_limit": "3act"}),
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
    return [pipeplan.export(schedule, to=name, **settings) for name in ("trace", "costs")]


def _compared(schedule: str, **settings: Any) -> Any:
    """Compare a plan with a run of the same ops, whose times no setting changes."""
    shape = {name: settings[name] for name in ("ranks", "stages", "microbatches", "chunks", "slices") if name in settings}
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
    pictures = [answer.front_view().about] if hasattr(answer, "front_view") else [view.costs for view in answer.views()]
    return _timeless(answer.to_dict()), pictures


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(part) for name, part in value.items() if name != "seconds"}
    return [_timeless(part) for part in value] if isinstance(value, list | tuple) else value


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
        question = OTHERWISE.get((command, name)) or OTHERWISE.get(("search" if command == "pareto" else command, name), usual)
        settings = {other: value for other, value in (SHAPE | question.settings).items() if value is not None}
        without, with_it = (
            _answer(command, question.schedule, json.dumps(given)) for given in (settings, settings | {name: question.value})
        )
        if without == with_it and not isinstance(with_it, str):
            ignored.append(name)
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
    """A keyword, a config file, a file of costs, and a call of a tool, which are the words of a command line."""
    simulate, file, costs = tools(["simulate"])["simulate"], tmp_path / "config.json", tmp_path / "saved.costs.json"
    for number, (name, question) in enumerate(SETTINGS_THAT_MATTER.items()):
        settings = _settings_of(name, question)
        answer = pipeplan.simulate(question.schedule, **settings)
        file.write_text(json.dumps(settings))
        assert pipeplan.simulate(question.schedule, config=file).to_dict() == answer.to_dict(), name
        folder = tmp_path / str(number)
        folder.mkdir()
        words = words_of(simulate, settings | {"name": question.schedule}, folder)
        code = main([words[0], "--json", *words[1:]])
        assert (code, json.loads(capsys.readouterr().out)) == (0, json.loads(json.dumps(answer.to_dict()))), name
        answer.save(costs)
        again = pipeplan.simulate(question.schedule, config=costs)
        assert _without_words(again.to_dict()) == _without_words(answer.to_dict()), name


def test_the_web_app_gives_the_same_answer():
    pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")
    from pipeplan.web.replies import compare
    from pipeplan.web.requests import CompareIn

    for name, question in SETTINGS_THAT_MATTER.items():
        settings = _settings_of(name, question)
        request = CompareIn.model_validate_json(json.dumps({"settings": settings, "schedules": [question.schedule]}))
        assert request.settings.settings() == Settings(**settings), name
        (result,) = json.loads(compare(request).body)["results"]
        assert result["makespan"] == pytest.approx(pipeplan.simulate(question.schedule, **settings).makespan), name


TABLES = {name: [[1.0, 2.0, 1.0, 3.0], [2.0, 1.0, 1.0, 1.0]] for name in ("forward", "backward_input", "size")}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("microbatch_factors", [[1.0, 2.0, 1.0, 3.0], [2.0, 1.0, 1.0, 1.0]]),
        ("microbatch_factors", TABLES | {"backward_weight": [1.0, 2.0, 1.0, 1.0]}),
        ("lengths", [[100.0, 50.0], 300.0, 100.0, 100.0]),
        ("forward_times", [1.0, 3.0]),
        ("activation_bytes", ["1MiB", 5.0]),
    ],
)
@pytest.mark.parametrize("schedule", ["1f1b", "zbv"])
def test_tables_and_lists_per_rank_pass_every_door(name, value, schedule, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(SETTINGS_THAT_MATTER, name, Question(value, schedule))
    for other in SETTINGS.keys() - {name}:
        monkeypatch.delitem(SETTINGS_THAT_MATTER, other)
    test_every_door_gives_the_same_answer(tmp_path, capsys)
    test_the_web_app_gives_the_same_answer()
