"""Write the form of the questions, or grade a filled-in form."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from benchmarks.skill import agrees, form, questions, right_answer, write_files


def main(arguments: list[str]) -> int:
    """Grade answers, or write the form; return 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.skill", description=__doc__)
    parser.add_argument("path", type=Path, help="filled-in form; with --write, a folder")
    parser.add_argument("--write", action="store_true", help="write the form and the files of the questions")
    options = parser.parse_args(arguments)
    if options.write:
        write_files(questions(), options.path)
        (options.path / "answers.yaml").write_text(form(), encoding="utf-8")
        return 0
    answers = msgspec.yaml.decode(options.path.read_bytes(), type=dict[str, object])
    score = 0
    for question in questions():
        answer, right = answers.get(question.name), right_answer(question)
        correct = agrees(right, answer)
        score += correct
        print(
            f"{'right' if correct else 'WRONG'}  {question.name}: {answer}" + ("" if correct else f"; right is {right}")
        )
    print(f"{score} of {len(questions())}")
    return 0 if score == len(questions()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
