import json

import pytest

from pipeplan.cli import main
from pipeplan.errors import InfeasibleError, InputError, ShapeError, UnknownNameError
from pipeplan.workbench.api import given, simulate_with
from pipeplan.workbench.searching import SearchOptions, placement_named, search_with

SHAPE = {"ranks": 3, "microbatches": 4, "p2p_time": 0.25}


def test_a_search_is_a_result_like_any_other():
    found = search_with(given(SHAPE | {"memory_limit": "2act"}), SearchOptions(evaluations=2000))
    assert found.fits
    assert found.memory.peak_activation.max() <= 2
    document = found.to_dict()
    assert {"found_by", "optimal", "evaluations", "lower_bound", "gap"} <= document.keys()
    assert document["lower_bound"] <= document["makespan"]
    assert simulate_with(found.schedule, given(SHAPE)).makespan == pytest.approx(found.makespan)


def test_the_same_seed_and_evaluations_give_the_same_answer():
    runs = [search_with(given(SHAPE), SearchOptions(placement="v", evaluations=3000, seed=5)) for _ in range(2)]
    assert runs[0].schedule == runs[1].schedule


@pytest.mark.parametrize(
    ("settings", "options", "error", "says"),
    [
        ({"memory_limit": "0.5act"}, {}, InfeasibleError, "least feasible limit"),
        ({}, {"placement": "vee"}, UnknownNameError, "did you mean 'wave'"),
        ({}, {"placement": "0,x"}, ShapeError, "write the rank of each stage"),
        ({}, {"placement": "v", "start": ("1f1b",)}, ShapeError, "cannot start from 1f1b"),
        ({"communication": "blocking"}, {}, InputError, "edge communication only"),
        ({"memory_limit": ["2act", "2act"]}, {}, InputError, "2 values for 3 ranks"),
        ({}, {"seconds": -1.0}, InputError, "at least 0"),
        ({"chunks": 3}, {"placement": "v"}, ShapeError, "2 chunk"),
    ],
)
def test_what_cannot_be_searched(settings, options, error, says):
    with pytest.raises(error, match=says):
        search_with(given(SHAPE | settings), SearchOptions(**({"evaluations": 10} | options)))


def test_placements_by_name_and_by_ranks():
    assert placement_named("wave", given({"ranks": 2})).rank_of == ((0, 1, 1, 0, 0, 1, 1, 0),)
    assert placement_named("0,1,1,0", given({})).name == "v"
    assert placement_named("0,0,1", given({})).name == "custom"


def test_the_command_and_its_front(tmp_path, capsys):
    best, front = tmp_path / "best.csv", tmp_path / "front.json"
    line = f"search -p 3 -m 4 --memory-limit 2act --evaluations 500 --json -o {best}"
    assert main(line.split()) == 0
    document = json.loads(capsys.readouterr().out)
    assert main(["simulate", str(best), "--json", "--no-visualization"]) == 0
    assert json.loads(capsys.readouterr().out)["makespan"] == document["makespan"]
    assert (
        main(f"search -p 3 -m 4 --pareto --points 3 --evaluations 600 -o {front} -o {tmp_path / 'f.svg'}".split()) == 0
    )
    record = json.loads(front.read_text())
    values = [point["value"] for point in record["points"]]
    assert values == sorted(values, reverse=True)
    for mark in record["published"]:
        assert min(point["value"] for point in record["points"] if point["peak"] <= mark["peak"]) <= mark["value"]
    assert (tmp_path / "f.svg").read_text().startswith("<?xml")
