"""Every function takes settings as a value, a mapping or a file, and keywords that override them."""

import json
from typing import Any

import pytest

import pipeplan
from docs.build.options import FUNCTIONS
from pipeplan.costs import ConfiguredSettings

COSTS: dict[str, Any] = {
    "ranks": 2,
    "microbatches": 4,
    "forward_times": (1.0, 2.0),
    "p2p_time": 0.25,
    "memory_limit": "8act",
    "time_unit": "ms",
    "costs_name": "mine",
}

CALLS = {
    "simulate": lambda **settings: pipeplan.simulate("1f1b", **settings).to_dict(),
    "compare": lambda **settings: pipeplan.compare("1f1b", "zb-h1", **settings).to_dict(),
    "explain": lambda **settings: pipeplan.explain("zb-h1", **settings).to_dict(),
    "search": lambda **settings: (
        pipeplan.search(evaluations=20, seconds=None, placement="linear", workers=1, **settings).schedule
    ),
    "check": lambda **settings: pipeplan.check("gpipe", **settings).to_dict(),
    "export": lambda **settings: str(pipeplan.export("1f1b", to="costs", **settings)),
    "diff": lambda **settings: pipeplan.diff("1f1b", pipeplan.simulate("1f1b", **settings), **settings).to_dict(),
    "sweep": lambda **settings: pipeplan.sweep("1f1b", **settings).to_dict(),
}


@pytest.mark.parametrize("name", CALLS)
def test_keywords_values_mappings_and_files_are_one(name, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(COSTS))
    call, value = CALLS[name], pipeplan.Settings(**COSTS)
    expected = call(**COSTS)
    for settings in (value, COSTS, path, str(path)):
        assert call(settings=settings) == expected
    assert call(settings=value.replace(p2p_time=9.0), p2p_time=0.25, costs_name="mine") == expected
    assert call(settings=value.replace(microbatches=3), microbatches=4) == expected


def test_functions_of_schedules_take_settings():
    taking = {function.__name__ for function, records in FUNCTIONS.items() if ConfiguredSettings in records}
    assert taking == {*CALLS, "pareto", "profile", "run"}


def test_none_restores_a_default_and_a_mapping_may_name_the_schedule():
    limited = pipeplan.Settings(ranks=2, microbatches=4, memory_limit="1act")
    assert not pipeplan.simulate("gpipe", settings=limited).fits
    assert pipeplan.simulate("gpipe", settings=limited, memory_limit=None).fits
    assert pipeplan.simulate(settings={"schedule": "zbv", "num_devices": 2}).name == "zbv"
    assert pipeplan.simulate(settings={"ranks": 4}, stages=2).ranks == 2
