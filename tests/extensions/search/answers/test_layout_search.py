"""``layout="auto"``: the answer, its files and its errors."""

import json
from typing import Any

import pytest

import pipeplan
from pipeplan.answers.simulating.result import view_of_result
from pipeplan.cli import main
from pipeplan.costs import Layer, OpSegments
from pipeplan.foundation.errors import InfeasibleError, InputError, PipeplanError

BLOCK = Layer(forward=1, backward_input=1.1, backward_weight=0.9, activation_bytes=100, static_bytes=300, role="block")
EMBEDDING = Layer(forward=0.2, backward_input=0.1, backward_weight=0.3, static_bytes=200, role="embedding")
HEAD = Layer(forward=2, backward_input=2, backward_weight=2, activation_bytes=300, static_bytes=200, role="head")
LAYERS = (EMBEDDING, *[BLOCK] * 10, HEAD)
COMPUTES = (("compute", 1.0),)
SEGMENTS = OpSegments(forward=COMPUTES, backward_input=COMPUTES, backward_weight=COMPUTES)
SHAPE: dict[str, Any] = {"ranks": 2, "microbatches": 4, "layers": LAYERS, "p2p_time": 0.1}
BUDGET: dict[str, Any] = {"evaluations": 400, "workers": 1}


def layout_of(answer: pipeplan.Result) -> tuple[int, ...]:
    """The layers of each stage that a search has found."""
    layout: tuple[int, ...] = answer.search.layers_per_stage
    return layout


@pytest.fixture(scope="module")
def answer():
    return pipeplan.search(layout="auto", memory_limit=2600, **SHAPE, **BUDGET)


def test_the_answer_has_the_layers_of_each_stage(answer):
    record = answer.to_dict()
    layout = record["layers_per_stage"]
    assert sum(layout) == len(LAYERS)
    assert len(layout) == answer.stages
    assert answer.lower_bound <= answer.makespan
    assert answer.fits
    assert f"layers {'+'.join(map(str, layout))}" in view_of_result(answer).costs
    tried = {(row["placement"], row["chunks"]) for row in record["placements"]}
    assert {("linear", 1), ("v", 2), ("loop", 2), ("loop", 3)} <= tried
    own = next(row for row in record["placements"] if row["value"] == pytest.approx(answer.makespan))
    assert own["layers_per_stage"] == layout
    # The bound is that of all placements: none has a smaller one.
    assert answer.lower_bound == pytest.approx(min(row["lower_bound"] for row in record["placements"]))


def test_the_answer_is_simulated_again_with_its_layout(answer, tmp_path):
    layout = layout_of(answer)
    for ending in ("csv", "json"):
        path = tmp_path / f"best.{ending}"
        answer.save(path)
        if ending == "json":
            assert json.loads(path.read_text())["layers_per_stage"] == list(layout)
        placement = {} if ending == "json" else {"ranks": 2, "chunks": answer.chunks}
        schedule = answer.schedule if ending == "csv" else path
        costs = {name: value for name, value in SHAPE.items() if name not in ("ranks", "microbatches")}
        again = pipeplan.simulate(schedule, layers_per_stage=layout, memory_limit=2600, **costs, **placement)
        assert again.makespan == answer.makespan
        assert again.peak == answer.peak


def test_it_is_never_worse_than_published_schedules_on_the_default_layout(answer):
    rows = pipeplan.compare(memory_limit=2600, **SHAPE)
    fitting = [row.makespan for row in rows if row.fits and row.timeline.schedule.placement.copies == 1]
    assert answer.makespan <= min(fitting) * (1 + 1e-9)


def test_without_it_the_record_has_no_layout():
    plain = pipeplan.search(placement="linear", **SHAPE, **BUDGET)
    assert "layers_per_stage" not in plain.to_dict()
    assert "layers_per_stage" not in plain.to_dict()["placements"][0]


def test_layers_per_stage_auto_is_the_same():
    choices: list[dict[str, Any]] = [{"layout": "auto"}, {"layers_per_stage": "auto"}]
    one, other = (pipeplan.search(placement="v", **choice, **SHAPE, **BUDGET).to_dict() for choice in choices)
    assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_settings_of_a_trainer_have_the_layout(answer, tmp_path):
    path = tmp_path / "best.torchtitan.sh"
    answer.save(path)
    words = path.read_text().partition("module_fqns_per_model_part ")[2].split()
    modules = [word.count("layers.") for word in words[: answer.stages]]
    layout = list(layout_of(answer))
    assert sum(modules) == 10
    assert modules == [layout[0] - 1, *layout[1:-1], layout[-1] - 1]


def test_table_and_shell(capsys, tmp_path):
    path = tmp_path / "layers.json"
    fields = ("role", "forward", "backward_input", "backward_weight")
    path.write_text(json.dumps([{name: getattr(layer, name) for name in fields} for layer in LAYERS]))
    line = f"search --layers {path} -p 2 -m 4 --layout auto --placement linear --evaluations 100"
    assert main(line.split()) == 0
    shown = capsys.readouterr().out
    assert "layers per stage" in shown
    assert "gap (all layouts)" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": None}, "layout auto needs the costs of each layer: set layers"),
        ({"layers_per_stage": (6, 6)}, "layers_per_stage fixes what layout auto should find"),
        ({"start": "1f1b"}, "a start has its own layers of each stage"),
        ({"overlap_times": 3.0}, "overlap_times are those of a stage.*give each layer its segments"),
        ({"segments": (SEGMENTS,)}, "segments are those of a stage.*give each layer its segments"),
        ({"decide": "overlap"}, "overlap needs"),
        ({"recompute_times": (1.0, 2.0)}, "recompute_times has a value for each stage"),
        ({"ranks": 20}, "12 layers cannot make 20 stages"),
        ({"forward_times": 3.0}, "forward times follow from the layers"),
        ({"layout": "even"}, "layout"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(PipeplanError, match=message):
        pipeplan.search(**{**SHAPE, **BUDGET, "layout": "auto", **options})


def test_a_limit_that_no_layout_meets():
    with pytest.raises(
        InfeasibleError, match=r"found no layout of 12 layers on 2 ranks.*needs.*the limit is 1\.\d+ KiB"
    ):
        pipeplan.search(layout="auto", memory_limit=1800, **SHAPE, **BUDGET)
    # Limits in activations are the same for every layout, and those that recomputation does not meet are found late.
    with pytest.raises(
        InfeasibleError, match=r"needs 1 activation on its fullest rank, and the limit is 0\.5 activations"
    ):
        pipeplan.search(layout="auto", memory_limit="0.5act", **{**SHAPE, "ranks": 4}, **BUDGET)
    with pytest.raises(InfeasibleError, match=r"needs 2\.0 KiB on its fullest rank"):
        pipeplan.search(layout="auto", memory_limit=1800, decide="recompute", **SHAPE, **BUDGET)
    # With more memory on one rank, layers move there.
    uneven = pipeplan.search(layout="auto", placement="linear", memory_limit=(1500, 4000), **SHAPE, **BUDGET)
    first, last = layout_of(uneven)
    assert first < last
    assert uneven.fits


def test_auto_is_for_searches_alone():
    with pytest.raises(PipeplanError, match="layers per stage auto is for search"):
        pipeplan.simulate("1f1b", layers_per_stage="auto", **SHAPE)
    with pytest.raises(InputError):
        pipeplan.simulate("1f1b", layout="auto", **SHAPE)  # type: ignore[call-arg]
