"""Rounds of trials: the next one begins when the last is finished, and a trial that stands twice is done once."""

from __future__ import annotations

import pytest

from pipeplan.extensions.planning.choice.trials import Rounds, Trial
from pipeplan.extensions.planning.configuration import Configuration


def trial(tensor: int) -> Trial:
    return Trial(Configuration(sequence=1024, global_batch=8, tensor=tensor), 1, 8)


def test_the_next_round_waits_for_the_last():
    rounds = Rounds(iter([[trial(1), trial(2)], [trial(4)]]))
    first, second = next(rounds), next(rounds)
    with pytest.raises(StopIteration):
        next(rounds)
    rounds.finished()
    with pytest.raises(StopIteration):
        next(rounds)
    rounds.finished()
    assert [first.payload, second.payload, next(rounds).payload] == [trial(1), trial(2), trial(4)]


def test_a_trial_that_stands_twice_holds_nothing_up():
    rounds = Rounds(iter([[trial(1), trial(1)], [trial(1)], [trial(2)]]))
    assert next(rounds).payload == trial(1)
    rounds.finished()
    assert next(rounds).payload == trial(2)
