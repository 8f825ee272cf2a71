"""What holds wherever a sweep runs, on one process."""

from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pipeplan.foundation.errors import InputError, RunError
from pipeplan.foundation.sweeps import Finished, SweepProgress, SweepTask, sweep
from tests.foundation.sweeps.work import Square, count, even_only, infinite, slow_process_of, square


def tasks(numbers: range) -> list[SweepTask[int]]:
    return [SweepTask(str(number), number) for number in numbers]


def test_tasks_are_done_in_their_order_and_answers_have_their_type() -> None:
    outcome = list(sweep(square, tasks(range(1, 200)), answer=Square, asked={}))
    assert [entry.answer for entry in outcome] == [square(number) for number in range(1, 200)]
    assert not any(entry.stored or entry.failure for entry in outcome)


def test_what_a_task_raises_is_its_own_affair() -> None:
    outcome = {entry.key: entry for entry in sweep(even_only, tasks(range(6)), answer=int, asked={})}
    assert [outcome[key].answer for key in "024"] == [0, 2, None]
    refused, failed = outcome["1"].failure, outcome["4"].failure
    assert refused is not None
    assert failed is not None
    assert (refused.kind, refused.error, refused.message) == ("refused", "InfeasibleError", "1 is odd")
    assert (failed.kind, failed.error, failed.message) == ("failed", "ZeroDivisionError", "four")
    assert "in even_only" in failed.trace
    with pytest.raises(RunError, match="1: InfeasibleError: 1 is odd"):
        outcome["1"].required()
    assert outcome["2"].required() == 2


def test_an_answer_that_json_cannot_hold_or_of_another_type_is_a_failure() -> None:
    (infinity,) = sweep(infinite, [SweepTask("a", 1)], answer=dict[str, float], asked={})
    (text,) = sweep(str, [SweepTask("a", 1)], answer=int, asked={})  # type: ignore[arg-type]
    assert infinity.failure is not None
    assert "time is inf" in infinity.failure.message
    assert text.failure is not None
    assert text.failure.message == "the answer is not of its type: Expected `int`, got `str`"


def test_a_key_is_done_once() -> None:
    outcome = list(sweep(square, tasks(range(1, 4)) * 2, answer=Square, asked={}))
    assert [entry.key for entry in outcome] == ["1", "2", "3"]


def test_tasks_are_drawn_when_they_are_needed(tmp_path: Path) -> None:
    """So that an iterator can leave out what is not needed any more: here, all after 5 was seen."""
    best: list[int] = []

    def drawn() -> Any:
        for number in range(1000):
            if 5 in best:
                return
            yield SweepTask(str(number), (number, 60))

    best.extend(
        entry.required() for entry in sweep(partial(count, str(tmp_path / "log")), drawn(), answer=int, asked={})
    )
    assert best == [0, 1, 2, 3, 4, 5]


class InRounds:
    """Numbers from 0 on, ten a round; the next round begins when all of the last one are finished."""

    def __init__(self, rounds: int) -> None:
        self.drawn = self.finished = 0
        self.most = 10 * rounds

    def __iter__(self) -> "InRounds":
        return self

    def __next__(self) -> SweepTask[int]:
        if self.drawn == self.most or (self.drawn % 10 == 0 and self.finished < self.drawn):
            raise StopIteration
        self.drawn += 1
        return SweepTask(str(self.drawn - 1), self.drawn - 1)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_iterator_may_pause_until_something_is_finished(workers: int, tmp_path: Path) -> None:
    for _ in range(2):
        rounds = InRounds(5)
        outcome = []
        for entry in sweep(abs, rounds, answer=int, asked={}, workers=workers, store=tmp_path / "s"):
            rounds.finished += 1
            outcome.append(entry.required() // 10)
        assert outcome == [number // 10 for number in range(50)]


def test_few_tasks_are_spread_over_the_workers() -> None:
    """Though many would fit into one batch: after a first round of quick ones, a round of ten is for both."""
    rounds = InRounds(20)
    of_round: dict[int, set[int]] = {}
    for entry in sweep(slow_process_of, rounds, answer=list[int], asked={}, workers=2):
        rounds.finished += 1
        number, process = entry.required()
        of_round.setdefault(number // 10, set()).add(process)
    assert [len(processes) for processes in of_round.values()] == [2] * 20


def test_after_its_seconds_no_task_is_begun(tmp_path: Path) -> None:
    log = tmp_path / "log"
    many = [SweepTask(str(number), (number, 30)) for number in range(1000)]
    outcome = list(sweep(partial(count, str(log)), many, answer=int, asked={}, seconds=0.3))
    assert 1 <= len(outcome) <= 11
    assert len(log.read_text().splitlines()) == len(outcome)
    assert not list(sweep(square, tasks(range(9)), answer=Square, asked={}, seconds=0))


def test_one_may_stop_at_any_task(tmp_path: Path) -> None:
    with closing(sweep(square, tasks(range(1, 9)), answer=Square, asked={}, store=tmp_path / "s")) as outcome:
        list(islice(outcome, 3))
    again = list(sweep(square, tasks(range(1, 9)), answer=Square, asked={}, store=tmp_path / "s"))
    assert [entry.answer for entry in again] == [square(number) for number in range(1, 9)]
    assert sum(entry.stored for entry in again) >= 3


def test_progress_counts(tmp_path: Path) -> None:
    sentence: list[SweepProgress] = []
    first = tasks(range(3))
    list(sweep(even_only, first, answer=int, asked={}, store=tmp_path / "s", progress=sentence.append))
    assert (sentence[-1].done, sentence[-1].stored, sentence[-1].failed, sentence[-1].tasks, sentence[-1].workers) == (
        3,
        0,
        1,
        3,
        1,
    )
    list(sweep(even_only, tasks(range(6)), answer=int, asked={}, store=tmp_path / "s", progress=sentence.append))
    assert (sentence[-1].done, sentence[-1].stored, sentence[-1].failed) == (6, 3, 4)


def test_ctrl_c_leaves_what_is_finished_in_the_store(tmp_path: Path) -> None:
    def stop(progress: SweepProgress) -> None:
        if progress.done >= 4:
            raise KeyboardInterrupt

    path = tmp_path / "s"
    function = partial(count, str(tmp_path / "log"))
    many = [SweepTask(str(number), (number, 60)) for number in range(8)]
    with pytest.raises(KeyboardInterrupt):
        list(sweep(function, many, answer=int, asked={}, store=path, progress=stop))
    outcome: list[Finished[int]] = list(sweep(function, many, answer=int, asked={}, store=path))
    assert [entry.stored for entry in outcome] == [True] * 4 + [False] * 4
    assert (tmp_path / "log").read_text().split() == list("01234567")


@pytest.mark.parametrize(("options", "field"), [({"workers": 0}, "workers"), ({"seconds": -1.0}, "seconds")])
def test_options_that_cannot_be(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as error:
        sweep(square, [], answer=Square, asked={}, **options)
    assert error.value.field == field
