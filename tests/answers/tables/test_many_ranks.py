"""Tables of many ranks are cut, and say so."""

import pipeplan
from pipeplan.answers.comparing import columns, comparison


def printed(answer, capsys):
    answer.print()
    return capsys.readouterr().out


def test_what_is_left_out_is_said(capsys):
    many = pipeplan.simulate("1f1b", ranks=100, microbatches=1)
    sentence = "68 ranks are not shown: --json lists all (in Python: to_dict())"
    assert sentence in printed(many, capsys)
    assert sentence in printed(pipeplan.explain(many.schedule), capsys)
    assert "not shown" not in printed(pipeplan.simulate("1f1b", ranks=32, microbatches=1), capsys)
    assert len(many.to_dict()["idle"]) == 100


def test_of_many_schedules_the_shortest_are_listed(capsys, monkeypatch):
    monkeypatch.setattr(comparison, "MOST_ROWS", 2)
    monkeypatch.setattr(columns, "MOST_ROWS", 2)
    outcome = pipeplan.compare("1f1b", "gpipe", "zb-h1", ranks=2, microbatches=4)
    sentence = printed(outcome, capsys)
    assert "1 slower schedule not listed: --json lists all" in sentence
    assert len(outcome.to_dict()["results"]) == 3
