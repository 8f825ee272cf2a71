"""Tables of many ranks are cut, and say so."""

import re

import pipeplan
from pipeplan.answers.parts import MOST_ROWS


def printed(answer, capsys, **shown):
    answer.print(**shown)
    return capsys.readouterr().out


def test_what_is_left_out_is_said(capsys):
    many = pipeplan.simulate("1f1b", ranks=100, microbatches=1)
    sentence = f"{100 - MOST_ROWS} ranks not listed: --all (in Python: all=True)"
    for answer in (many, pipeplan.explain(many.schedule)):
        assert sentence in printed(answer, capsys)
        assert "not listed" not in (everything := printed(answer, capsys, all=True))
        assert all(re.search(f"(?m)^{rank} ", everything) for rank in range(100))
    assert "not listed" not in printed(pipeplan.simulate("1f1b", ranks=MOST_ROWS, microbatches=1), capsys)
    assert len(many.to_dict()["idle"]) == 100


def test_of_many_schedules_ten_are_listed_and_all_on_request(capsys):
    outcome = pipeplan.compare(ranks=4, microbatches=8)
    more = f"{len(outcome) - MOST_ROWS} more schedules not listed: --all"
    assert more in printed(outcome, capsys)
    everything = printed(outcome, capsys, all=True)
    assert more not in everything
    assert all(f"\n{result.name} " in everything for result in outcome)
    assert len(outcome.to_dict()["results"]) == len(outcome) > MOST_ROWS
