"""A text that is edited: the verdict is that of the checker and the simulator, and says where and why."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pipeplan
from pipeplan.answers.simulating.result import Result
from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.extensions.web.editing.edit_texts import EditedShape, Place
from pipeplan.extensions.web.editing.edits import Edit, change_in_words, edited, text_of
from pipeplan.extensions.web.editing.stopped_runs import StoppedRun
from pipeplan.foundation.errors import CostError
from pipeplan.model import Schedule, dependencies
from tests.formats.schedules import schedules

PLAIN = Settings()
UNEVEN = Settings(p2p_time=0.25, forward_times=1.5, backward_times=2.5)


def judged(text: str, of: Schedule, settings: Settings = PLAIN) -> Edit:
    return edited(text, settings, shape=EditedShape.of(of))


def result_of(edit: Edit) -> Result:
    assert edit.result is not None
    return edit.result


def schedule_of(edit: Edit) -> Schedule:
    assert edit.schedule is not None
    return edit.schedule


def stopped_of(edit: Edit) -> StoppedRun:
    assert edit.stopped is not None
    return edit.stopped


def one_f_one_b() -> Schedule:
    return pipeplan.simulate("1f1b", ranks=4, microbatches=6).schedule


def changed(old: str, new: str) -> Edit:
    schedule = one_f_one_b()
    text = text_of(schedule)
    assert old in text
    return judged(text.replace(old, new, 1), schedule)


@given(schedules())
@settings(max_examples=40)
def test_a_text_is_its_schedule(schedule):
    edit = judged(text_of(schedule), schedule)
    assert edit.schedule == schedule
    assert edit.valid
    assert text_of(schedule_of(edit)) == text_of(schedule)
    assert result_of(edit).makespan == pipeplan.simulate(schedule).makespan


@given(schedules(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_the_verdict_is_that_of_the_checker_and_the_simulator(schedule, randoms):
    rows = [line.split(" ") for line in text_of(schedule).split("\n")]
    for _ in range(randoms.randint(1, 3)):
        _disturb(rows, randoms)
    edit = judged("\n".join(map(" ".join, rows)), schedule, UNEVEN)
    if edit.schedule is None or edit.notes:
        return
    report = check(edit.schedule)
    assert edit.valid == report.valid
    assert [flaw.rule for flaw in edit.flaws] == [problem.rule for problem in report.problems][: len(edit.flaws)]
    if edit.valid:
        assert (
            result_of(edit).makespan
            == pipeplan.simulate(schedule_of(edit), p2p_time=0.25, forward_times=1.5, backward_times=2.5).makespan
        )
    elif edit.stopped is not None:
        _assert_stopped(edit)


def _disturb(rows: list[list[str]], randoms: random.Random) -> None:
    row = randoms.choice(rows)
    one, other = randoms.randrange(len(row)), randoms.randrange(len(row))
    what = randoms.randrange(5)
    if what < 3:
        row[one], row[other] = row[other], row[one]
    elif what == 3 and len(row) > 1:
        row.pop(one)
    else:
        randoms.choice(rows).insert(0, row[one])


def _assert_stopped(edit: Edit) -> None:
    """What runs has all that it waits for; what stands first among the rest does not, or may not run at all."""
    schedule, stopped = schedule_of(edit), stopped_of(edit)
    start, end, ran = stopped.timeline.start, stopped.timeline.end, stopped.ran
    for sources in dependencies(schedule).all:
        needy = np.flatnonzero(ran & (sources >= 0))
        same_rank = schedule.rank[sources[needy]] == schedule.rank[needy]
        together = schedule.joined[needy] & (sources[needy] == needy - 1)
        assert ran[sources[needy]].all()
        assert not (ran & (sources == -2)).any()
        assert (end[sources[needy]] <= start[needy] + 1e-9)[same_rank & ~together].all()
    assert (start[~ran] >= stopped.until - 1e-9).all()
    assert not ran.all() or {flaw.rule for flaw in edit.flaws} == {"incomplete"}, (
        "what is there may run, and some is not"
    )
    first = {rank: int(np.flatnonzero(~ran & (schedule.rank == rank))[0]) for rank in set(schedule.rank[~ran].tolist())}
    assert [(item.rank, item.position) for item in stopped.waiting] == sorted(first.items())
    for rank in range(schedule.ranks):
        own = np.flatnonzero(schedule.rank == rank)
        assert (np.diff(ran[own].astype(int)) <= 0).all(), "a rank that has stopped does not go on"


def test_what_is_wrong_is_told_at_its_word():
    for old, new, rule, says, places in [
        ("3F0 3B0", "3B0 3F0", "order", "waits for 3F0, which does not come before it", [(3, 0)]),
        ("3F0 3B0", "3F0", "incomplete", "3B0 is missing", []),
        ("3F0 3B0", "3F0 3B0 3B0", "duplicate", "occurs twice", [(3, 2)]),
        ("3F0 3B0", "3F0 3B0 2F9", "range", "there is no microbatch 9; the last one is microbatch 5", [(3, 2)]),
        ("3F0 3B0", "3F0 3B0 9F0", "range", "there is no stage 9", [(3, 2)]),
        ("3F0 3B0", "3F0 3X0", "notation", "'3X0' is not an op", [(3, 1)]),
        ("3F0 3B0", "3F0 3B", "notation", "B needs a microbatch", [(3, 1)]),
        ("3F0 3B0", "3F0 <b>x</b>", "notation", "'<b>x</b>' is not an op", [(3, 1)]),
        ("3F0 3B0", "3F0 \U0001f600", "notation", "is not an op", [(3, 1)]),
        ("3F0 3B0", "3F0 (3F1;3B0)OVERLAP", "notation", "is not an op", [(3, 1)]),
        ("3F0 3B0", "3F0.40000 3B0", "notation", "the last slice is 32,767", [(3, 0)]),
        ("2F0 2F1", "2F1", "incomplete", "2F0 is missing", []),
    ]:
        edit = changed(old, new)
        assert not edit.valid, old
        result = next(flaw for flaw in edit.flaws if flaw.rule == rule)
        assert says in result.message, old
        assert [(place.line, place.word) for place in result.places] == places, old


def test_a_circle_of_waits_names_and_marks_all_its_ops():
    schedule = one_f_one_b()
    text = text_of(schedule).replace("0F3 0B0", "0F3").replace("0F1 0F2", "0F1 0B0 0F2")
    edit = judged(text, schedule)
    (flaw,) = edit.flaws
    assert flaw.rule == "deadlock"
    assert "0B0 on rank 0 waits for 1B0, which cannot run before 1F2" in flaw.message
    assert flaw.places == (Place(0, 2), Place(1, 2))
    assert (
        stopped_of(edit).waiting[1].message == "rank 1 stops before 1F2: it waits for 0F2, which rank 0 never reaches"
    )
    assert stopped_of(edit).until == 9


@pytest.mark.parametrize("text", ["", " \t\n\n", "\ufeff"])
def test_a_text_without_ops(text):
    (flaw,) = judged(text, one_f_one_b()).flaws
    assert "there are no ops" in flaw.message


@pytest.mark.slow
def test_long_nonsense_is_told_in_a_few_sentences():
    edit = judged("x" * 1000 + " 0F0 " * 40_000, one_f_one_b())
    assert not edit.valid
    assert sum(len(flaw.message) for flaw in edit.flaws) < 10_000
    edit = judged("y" * 1_000_000, one_f_one_b())
    assert len(edit.flaws[0].message) < 300
    edit = judged("? " * 100_000, one_f_one_b())
    assert (len(edit.flaws), edit.more) == (20, 99_980)


@pytest.mark.parametrize("text", ["999999999F999999999", "0F0 0B0\n999999999F0", "0F999999999 0B999999999"])
def test_numbers_that_are_too_large_are_told(text):
    assert not edited(text, PLAIN).valid
    assert not judged(text, one_f_one_b()).valid


def test_whatever_stands_between_ops():
    schedule = one_f_one_b()
    for old, new in ((" ", ", \t"), ("\n", "\r\n"), (" ", "\u00a0")):
        assert judged(text_of(schedule).replace(old, new), schedule).schedule == schedule


def test_a_schedule_of_another_shape_is_taken_as_it_is():
    other = pipeplan.simulate("zbv", ranks=4, microbatches=9).schedule
    edit = judged(text_of(other), one_f_one_b())
    assert edit.valid
    assert edit.notes == ("changed shape: 4 ranks, 8 stages (v), 9 microbatches",)
    assert edited(text_of(other), PLAIN).schedule == other


def test_a_missing_row_is_told():
    schedule = pipeplan.simulate("interleaved-1f1b", ranks=4, microbatches=4, chunks=2).schedule
    edit = judged("\n".join(text_of(schedule).split("\n")[:3]), schedule)
    assert edit.flaws[0].message == "3 lines of ops for 4 ranks: expected one line per rank"


def test_the_costs_shape_is_that_of_the_text():
    schedule = one_f_one_b()
    edit = judged(text_of(schedule), schedule, Settings(ranks=9, microbatches=3, chunks=2, recompute="all"))
    assert edit.valid
    assert judged(text_of(schedule), schedule, Settings(offload="all")).valid
    with pytest.raises(CostError):
        judged(text_of(schedule), schedule, Settings(forward_times=(1.0, 2.0)))


def test_memory_over_the_limit_is_marked_and_runs():
    schedule = one_f_one_b()
    edit = judged(text_of(schedule), schedule, Settings(memory_limit="3act"))
    assert edit.valid
    assert not result_of(edit).fits
    assert edit.over[0].places == (Place(0, 3),)
    assert "its limit is 3" in edit.over[0].message


def test_a_schedule_that_only_blocking_messages_stop():
    text = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"
    schedule = pipeplan.simulate("1f1b", ranks=2, microbatches=2).schedule
    edit = judged(text, schedule, Settings(communication="blocking"))
    assert edit.valid == (check(pipeplan.simulate(schedule, communication="blocking").schedule, sends="blocking").valid)


def test_a_change_is_explained_by_the_op_that_it_moves():
    before = changed("0F0", "0F0")
    later = changed("1F3 1B1", "1B1 1F3")
    assert change_in_words(result_of(before), result_of(later)) == (
        "+3 (+11.1%), because rank 1 now runs 1B1 before 1F3, which starts 3 later."
    )
    assert change_in_words(result_of(later), result_of(before)) == (
        "-3 (-10.0%), because rank 1 no longer has to run 1B1 before 1F3, which starts 3 sooner."
    )
    assert change_in_words(result_of(before), result_of(before)) == "The makespan is unchanged."


@given(schedules(slices=1), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_the_op_that_a_change_is_blamed_on_is_late(schedule, randoms):
    before = judged(text_of(schedule), schedule, UNEVEN)
    rows = [line.split(" ") for line in text_of(schedule).split("\n")]
    row = randoms.choice(rows)
    at = randoms.randrange(len(row))
    row.insert(randoms.randrange(len(row)), row.pop(at))
    after = judged("\n".join(map(" ".join, rows)), schedule, UNEVEN)
    if not after.valid:
        return
    words = change_in_words(result_of(before), result_of(after))
    difference = result_of(after).makespan - result_of(before).makespan
    assert words.startswith("+" if difference > 1e-9 else "-" if difference < -1e-9 else "The makespan is unchanged")
    assert ("because" in words) == (abs(difference) > 1e-9)
