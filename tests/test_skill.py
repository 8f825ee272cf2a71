"""Questions that measure the skill of agents: each has an answer, and the grader tells right answers from wrong ones."""

import msgspec
import pytest

from benchmarks import skill
from benchmarks.skill.__main__ import main

QUESTIONS = skill.questions()


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(question, id=question.name, marks=[pytest.mark.slow] * question.command.startswith("plan "))
        for question in QUESTIONS
    ],
)
def test_every_question_has_an_answer_that_is_graded_right_and_no_other_is(question):
    right = skill.right_answer(question)
    assert isinstance(right, int | float | str | list)
    assert right
    assert skill.agrees(right, right)
    assert not skill.agrees(right, None)
    assert not skill.agrees(right, right * 1.02 if isinstance(right, int | float) else "zb-h0")
    assert str(right) not in question.question


@pytest.mark.parametrize(
    ("right", "answer"),
    [
        (1438.0, "1,438 ms"),
        (1438.0, 1430),
        (2, "2"),
        (0.25, "25e-2"),
        ("zbv", " ZBV"),
        (["8", "4"], [4, 8]),
        (["a", "b"], "b, a"),
    ],
)
def test_a_right_answer_may_be_written_in_several_ways(right, answer):
    assert skill.agrees(right, answer)


@pytest.mark.parametrize(
    ("right", "answer"),
    [(1438.0, 1460), (2, "two"), ("zbv", "zb-h1"), (["a", "b"], ["a"]), (["a"], "a, b"), (2, True), (1, [1])],
)
def test_a_wrong_answer_is_graded_wrong(right, answer):
    assert not skill.agrees(right, answer)


def test_the_form_has_all_questions_and_the_folder_their_files(tmp_path):
    assert main(["--write", str(tmp_path)]) == 0
    assert len(QUESTIONS) == 20
    form = msgspec.yaml.decode((tmp_path / "answers.yaml").read_bytes())
    assert form == dict.fromkeys([question.name for question in QUESTIONS])
    for question in QUESTIONS:  # questions may share a file, if they mean the same one
        for name, text in question.files.items():
            assert (tmp_path / name).read_text() == text


def test_the_score_counts_right_answers(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.skill.__main__.questions", lambda: QUESTIONS[:3])
    (tmp_path / "answers.yaml").write_text("step-of-1f1b: 1438\ntimes-of-stages: 342\n")
    assert main([str(tmp_path / "answers.yaml")]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "right  step-of-1f1b: 1438",
        "WRONG  times-of-stages: 342; right is 171.0",
        "WRONG  one-long-microbatch: None; right is 57.0",
        "1 of 3",
    ]
