"""Every answer begins with one sentence, the same in the terminal, in JSON, in Python and in a notebook."""

import json
import re
from typing import Any

import pytest

import pipeplan
from pipeplan.answers.parts import MOST_ROWS
from pipeplan.cli import main

MODEL = ["-c", "gpt-6.2b-24", "-p", "4", "-m", "12", "--memory-limit", "13GiB"]
COMMANDS = {
    "simulate": ["simulate", "zbv"],
    "compare": ["compare"],
    "explain": ["explain", "v-half"],
    "search": ["search", "--evaluations", "200", "--workers", "1"],
}
SETTINGS: dict[str, Any] = {"config": "gpt-6.2b-24", "ranks": 4, "microbatches": 12, "memory_limit": "13GiB"}


def answer_of(name: str) -> Any:
    if name == "search":
        return pipeplan.search(**SETTINGS, evaluations=200, workers=1)
    schedules = {"simulate": ["zbv"], "compare": [], "explain": ["v-half"]}[name]
    return getattr(pipeplan, name)(*schedules, **SETTINGS)


@pytest.mark.needs("search")
@pytest.mark.parametrize("name", COMMANDS)
def test_the_shell_json_python_and_a_notebook_begin_with_the_same_sentence(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    answer = answer_of(name)
    main([*COMMANDS[name], *MODEL])
    assert capsys.readouterr().out.split("\n")[0] == answer.headline
    main([*COMMANDS[name], *MODEL, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert next(iter(document)) == "headline"
    assert document["headline"] == answer.headline == answer.to_dict()["headline"]
    assert answer.headline in repr(answer)
    assert answer._repr_html_().startswith(f"<p><strong>{answer.headline}</strong></p>")


@pytest.mark.needs("search")
@pytest.mark.parametrize(
    ("name", "most"), [("simulate", 27), ("compare", 30), ("explain", 25), ("search", 15)]
)  # a simulation with its picture
@pytest.mark.parametrize("shape", [MODEL, ["-p", "4", "-m", "8"]], ids=["model", "unit costs"])
def test_an_answer_fits_a_screen_of_eighty_columns(name, most, shape, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    main([*COMMANDS[name], *shape])
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) <= most
    assert max(map(len, printed)) <= 80
    main([*COMMANDS[name], *shape, "--verbose", "--all"])
    assert len(capsys.readouterr().out.splitlines()) > len(printed)


def test_a_headline_says_how_much_is_left_to_gain_and_what_is_over_the_limit():
    result = pipeplan.simulate("1f1b", ranks=4, microbatches=8)
    left = 1 - result.lower_bound / result.makespan
    assert f"no order on this placement is more than {100 * left:.1f}% shorter" in result.headline
    assert pipeplan.simulate("zbv", ranks=4, microbatches=8).headline.endswith("no order on this placement is shorter")
    over = pipeplan.simulate("1f1b", ranks=4, microbatches=8, memory_limit="2act")
    assert over.headline.startswith("1f1b is over the memory limit: rank 0 needs 4 activations, its limit is 2")
    none = pipeplan.compare("1f1b", "gpipe", ranks=4, microbatches=8, memory_limit="2act")
    assert none.headline == "No schedule fits 2 activations: 1f1b, which needs the least, takes 4 activations"


def test_a_headline_claims_nothing_of_placements_that_are_not_compared():
    costs: dict[str, Any] = {"ranks": 2, "microbatches": 8, "forward_times": [1, 5, 5, 1]}
    on_a_v = pipeplan.compare("zbv", "v-half", **costs)
    assert on_a_v.headline.endswith("and no order on this placement is shorter")
    assert pipeplan.simulate("interleaved-zb", **costs).makespan < on_a_v.least.value
    assert "on the placement v," in on_a_v.least.covers


def test_a_comparison_of_two_says_what_the_faster_one_costs():
    two = pipeplan.compare("zb-h2", "1f1b", ranks=4, microbatches=8)
    assert two.headline == (
        "zb-h2 is faster than 1f1b: 27 instead of 33 (-18.2%), with 75.0% more peak memory, "
        "and no order on this placement is shorter"
    )
    same = pipeplan.compare("gpipe", "1f1b", ranks=4, microbatches=8)
    assert same.headline.startswith("1f1b and gpipe take the same time, 33, with 50.0% less peak memory")


def test_an_explanation_says_the_main_reason_and_what_would_help_most():
    answer = pipeplan.explain("1f1b", ranks=4, microbatches=8)
    best = answer.helping[0]
    less = 1 - best.makespan / answer.makespan
    assert answer.headline.endswith(f"{best.change} would take {100 * less:.1f}% less")
    shares = {reason: sum(times) for reason, times in answer.explain.reasons.items()}
    assert max(shares, key=lambda reason: shares[reason]) == "compute"
    assert "50.0% of it waiting for ops on other ranks" in answer.headline


def test_a_named_schedule_that_is_impossible_is_said_in_the_headline(tmp_path):
    (tmp_path / "bad.csv").write_text("0F0,0B0,0F1\n1F0,1B0,1F1,1B1\n")
    table = pipeplan.compare("1f1b", tmp_path / "bad.csv")
    assert table.headline.endswith(
        "bad.csv is not possible here: incomplete: rank 0: 0B1 is missing, and so are I and W"
    )


def test_a_notebook_shows_the_table_and_the_pictures_of_the_schedules_that_it_lists():
    html = pipeplan.compare(ranks=2, microbatches=4)._repr_html_()
    assert "more schedules not listed" in html
    assert "gpipe: simulated" not in html


def test_an_explanation_advises_what_can_be_done():
    v_half = pipeplan.explain("v-half", config="gpt-6.2b-24", ranks=4, microbatches=12, memory_limit="13GiB")
    left = 1 - v_half.lower_bound / v_half.makespan
    assert v_half.headline.endswith(f"; a search may find an order that takes up to {100 * left:.1f}% less")
    slow = pipeplan.explain("zbv", ranks=4, microbatches=16, forward_times=[1, 1, 1, 2], times_per="rank")
    assert "the same order with all stages balanced would take " in slow.headline
    assert "its ranks never idle; no change that was tried helps" in pipeplan.explain("1f1b", ranks=1).headline
    for answer in (v_half, slow, pipeplan.explain("zb-h2", ranks=4, microbatches=8, p2p_time=0.5)):
        assert "transfers free" not in answer.headline


def test_what_is_listed_is_the_best_of_each_group_and_then_what_fits(capsys):
    table = pipeplan.compare(**SETTINGS)
    table.print()
    printed = capsys.readouterr().out
    listed = [result for result in table if re.search(f"(?m)^{re.escape(result.name)}( !)? ", printed)]
    assert len(listed) == MOST_ROWS
    assert {result.needs for result in listed} == {result.needs for result in table}
    assert all(result in listed for result in table if result.fits)


def test_sixty_four_ranks_and_512_microbatches_fit_the_screen_too(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for line in ("simulate 1f1b --no-visualization", "explain 1f1b"):
        main([*line.split(), "-p", "64", "-m", "512"])
        printed = capsys.readouterr().out
        assert f"{64 - MOST_ROWS} ranks not listed: --all" in printed
        assert len(printed.splitlines()) <= 32
