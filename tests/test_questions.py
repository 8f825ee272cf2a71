"""Questions from issue threads: pipeplan's answers still hold."""

import re

import pytest

from benchmarks.questions import answers_to, holds, questions, unanswered, values_in
from pipeplan.cli.app import command_line

QUESTIONS = {question.name: question for question in questions()}
QUICK = (
    "group-below-p",
    "choose-vpp",
    "zero-bubble-with-checkpointing",
    "batched-sends-deadlock",
    "seven-layers-on-two-ranks",
)


def test_every_question_names_its_thread_and_has_an_answer():
    assert len(QUESTIONS) == len(questions()) >= 40
    assert len({question.thread for question in questions()}) >= 40
    every = [(item.question, item.thread) for item in questions()]
    every += [(item.question, item.thread) for item in unanswered()]
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread) for _, thread in every)
    assert all(text.endswith("?") for text, _ in every)
    assert all(question.answer.endswith(".") and question.commands and question.checks for question in questions())
    assert all(question.reason.endswith(".") for question in unanswered())


def test_nothing_has_come_that_answers_an_unanswered_question():
    """No command or option has such a name, and no answered question is that of the same thread."""
    app = command_line("all")
    commands = [name for name in app if not name.startswith("-")]
    options = {
        f"{name} {part.field_info.name}" for name in commands for part in app[name].assemble_argument_collection()
    }
    assert "simulate microbatch_factors" in options
    assert "simulate unshard_times" in options
    for question in unanswered():
        assert [option for option in options if re.search(question.absent, option)] == [], question.question
    threads = {question.thread for question in questions()}
    assert [question.thread for question in unanswered() if question.thread in threads] == []


@pytest.mark.parametrize("place", range(len(unanswered())), ids=[question.thread for question in unanswered()])
def test_every_unanswered_question_is_tried_again(place, tmp_path):
    question = unanswered()[place]
    answers = answers_to(question, tmp_path)
    assert question.checks
    assert [check for check in question.checks if not holds(check, answers)] == [], answers


def answered(name, folder):
    question = QUESTIONS[name]
    answers = answers_to(question, folder)
    wrong = {check: values_in(check, answers) for check in question.checks if not holds(check, answers)}
    assert not wrong, {name: answer["error"] for name, answer in answers.items() if "error" in answer}


@pytest.mark.parametrize("name", QUICK)
def test_a_few_answers_hold(name, tmp_path):
    answered(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(QUESTIONS.keys() - {*QUICK}))
def test_every_answer_holds(name, tmp_path):
    answered(name, tmp_path)


def test_a_condition_on_what_an_answer_lacks_does_not_hold(tmp_path):
    answers = answers_to(QUESTIONS["buffers-of-1f1b"], tmp_path)
    assert holds("buffers.peak_activation[0] == 4", answers)
    assert not holds("buffers.peak_activation[0] == 5", answers)
    assert not holds("buffers.peak == 4", answers)
    assert not holds("buffers.results['zbv'].makespan > 0", answers)
    assert values_in("buffers.makespan > 3", answers) == {"buffers.makespan": 33.0}
