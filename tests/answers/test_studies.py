"""Studies: schedules on all combinations of settings."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.answers import ScheduleLike
from pipeplan.costs import OPS
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.sweeps import SweepProgress
from pipeplan.strategies import STRATEGIES

MINE = replace(STRATEGIES["gpipe"], name="mine", aliases=())


def test_every_case_is_what_a_simulation_gives():
    names: list[ScheduleLike] = ["1f1b", "zbv", MINE]
    microbatches, limits = [4, 8], [None, "3act"]
    study = pipeplan.sweep(names, ranks=4, microbatches=microbatches, memory_limit=limits, p2p_time=0.25)
    assert study.varied == ("microbatches", "memory_limit")
    assert len(study) == 12
    cases = iter(study)
    for count, limit in product(microbatches, limits):
        for name in names:
            case = next(cases)
            result = pipeplan.simulate(name, ranks=4, microbatches=count, memory_limit=limit, p2p_time=0.25)
            assert case.schedule == result.name
            assert case.settings == {"microbatches": count, "memory_limit": limit}
            assert case.figures is not None
            assert case.figures.makespan == result.makespan
            assert case.figures.fits == result.fits
            assert case.figures.gap == result.gap


def test_lists_ranges_and_arrays_vary_and_a_tuple_is_one_value():
    study = pipeplan.sweep(
        "1f1b", ranks=2, microbatches=range(2, 5, 2), p2p_time=np.linspace(0, 1, 3), forward_times=(1.0, 2.0)
    )
    assert study.varied == ("microbatches", "p2p_time")
    assert [tuple(case.settings.values()) for case in study] == list(product([2, 4], [0.0, 0.5, 1.0]))
    uneven = pipeplan.sweep("1f1b", ranks=2, microbatches=2, forward_times=[1, (1, 3)])
    assert [case.settings["forward_times"] for case in uneven] == [1.0, (1.0, 3.0)]


def test_the_keys_of_a_dictionary_name_its_values(tmp_path, capsys):
    store = tmp_path / "study.db"
    so_far: list[SweepProgress] = []
    shared: dict[str, Any] = {"ranks": 8, "microbatches": 8, "store": store, "progress": so_far.append}
    uneven = (*(1.0,) * 7, 2.0)
    study = pipeplan.sweep("1f1b", forward_times={"even": 1, "slow end": uneven}, p2p_time=[0.0, 0.5], **shared)
    assert [tuple(case.settings.values()) for case in study] == list(product(["even", "slow end"], [0.0, 0.5]))
    listed = pipeplan.sweep("1f1b", forward_times=[1, uneven], p2p_time=[0.0, 0.5], **shared)
    assert [case.figures for case in listed] == [case.figures for case in study]
    assert so_far[-1].stored == 4  # the store knows values, not their names
    listed.print()
    table = capsys.readouterr().out
    assert "no room" not in table
    assert "60.9%" in table


def test_segments_of_all_stages_are_one_value_and_named_ones_vary():
    slow, fast = ({op: [{"compute": time}, {"all_to_all": 1}] for op in OPS} for time in (2, 1))
    shape: dict[str, Any] = {"ranks": 2, "microbatches": 2}
    study = pipeplan.sweep("1f1b-overlap", segments=slow, pair_slowdown=[1, 1.5], **shape)
    named = pipeplan.sweep("1f1b-overlap", segments={"slow": slow, "fast": fast}, **shape)
    assert study.varied == ("pair_slowdown",)
    assert [case.settings for case in named.cases] == [{"segments": "slow"}, {"segments": "fast"}]
    assert named.cases[0].figures == study.cases[0].figures != named.cases[1].figures


def test_settings_are_shared_and_never_vary():
    costs = pipeplan.Settings(ranks=2, microbatches=2, forward_times=[1, 2], memory_limit="8act")
    (case,) = pipeplan.sweep("1f1b", settings=costs)
    assert case.figures is not None
    assert case.figures.makespan == pipeplan.simulate("1f1b", settings=costs).makespan
    free, limited = pipeplan.sweep(
        "zbv-heuristic", settings=costs.replace(forward_times=1), memory_limit=[None, "1act"]
    )
    assert free.figures is not None
    assert limited.figures is None


def test_what_a_schedule_cannot_be_is_a_row_with_the_reason():
    study = pipeplan.sweep(["1f1b", "zbv"], ranks=2, microbatches=4, chunks=[1, 2])
    assert [case.refused for case in study] == [
        None,
        "zbv needs 2 chunks per rank, not 1",
        "1f1b needs 1 chunk per rank, not 2: interleaved-1f1b takes several",
        None,
    ]
    # An option that does not vary is left out for a schedule that lacks it, as in a comparison.
    assert all(case.refused is None for case in pipeplan.sweep(["1f1b", "zbv"], ranks=[2, 4], chunks=2))


def test_a_frame_has_a_row_per_case_and_the_table_the_first_ones(capsys):
    study = pipeplan.sweep(["1f1b", "zbv"], ranks=4, microbatches=[4, 8], memory_limit=["3act", "9act"], time_unit="ms")
    frame = study.to_frame()
    assert list(frame.columns)[:3] == ["schedule", "microbatches", "memory_limit"]
    assert frame["makespan"].tolist() == [case.figures.makespan for case in study if case.figures]
    assert frame["refused"].isna().all()
    study.print()
    assert "1f1b !" in capsys.readouterr().out
    assert repr(study) == "<Study of microbatches, memory_limit: 8 cases, 0 not possible>"
    chunked = pipeplan.sweep("interleaved-1f1b", ranks=2, microbatches=4, chunks=[1, 2]).to_frame()
    assert chunked["chunks"].tolist() == [1, 2]
    assert list(chunked.columns).count("chunks") == 1


def test_a_larger_study_resumes_from_the_store_of_a_smaller_one(tmp_path):
    store = tmp_path / "study.db"
    so_far: list[SweepProgress] = []
    shared: dict[str, Any] = {"ranks": 2, "store": store, "progress": so_far.append}
    pipeplan.sweep(["1f1b", MINE], microbatches=[2, 4], **shared)
    assert (so_far[-1].done, so_far[-1].tasks, so_far[-1].stored) == (4, 4, 0)
    larger = pipeplan.sweep(["1f1b", MINE, "zbv"], microbatches=[2, 4, 8], **shared)
    assert (so_far[-1].done, so_far[-1].stored) == (9, 4)
    assert [case.to_dict() for case in larger] == [
        case.to_dict() for case in pipeplan.sweep(["1f1b", MINE, "zbv"], ranks=2, microbatches=[2, 4, 8])
    ]
    with pytest.raises(InputError, match=r"p2p_time is absent there and 0\.5 here"):
        pipeplan.sweep("1f1b", microbatches=[2], p2p_time=0.5, **shared)


def test_a_schedule_of_the_same_name_is_not_taken_from_the_store(tmp_path):
    store = tmp_path / "study.db"
    for name, makespan in (("1f1b", 9), ("gpipe", 9), ("zb-h1", 7)):
        schedule = pipeplan.simulate(name, ranks=2, microbatches=2).schedule.renamed("mine")
        (case,) = pipeplan.sweep(schedule, store=store)
        assert case.figures is not None
        assert case.figures.makespan == makespan


def test_a_progress_bar_is_shown_on_request(capsys):
    pipeplan.sweep("1f1b", microbatches=[2, 4], progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "100%" in captured.err


@pytest.mark.slow
def test_processes_give_the_same_answers():
    options: dict[str, Any] = {"ranks": 2, "microbatches": list(range(2, 12)), "p2p_time": [0.0, 0.5]}
    schedules: list[ScheduleLike] = ["1f1b", "zbv", replace(MINE, name="elsewhere")]
    assert [case.to_dict() for case in pipeplan.sweep(schedules, workers=2, **options)] == [
        case.to_dict() for case in pipeplan.sweep(schedules, **options)
    ]
