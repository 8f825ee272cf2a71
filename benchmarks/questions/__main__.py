"""Answer the questions, and print what each check compares."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.questions import answers_to, holds, questions, unanswered, values_in


def main(names: list[str]) -> int:
    """Answer the questions with these names, or all; return 1 if a check fails."""
    wrong = 0
    chosen = [question for question in questions() if question.name in names or not names]
    for question in chosen:
        begin = time.perf_counter()
        with TemporaryDirectory() as folder:
            answers = answers_to(question, Path(folder))
        print(f"{question.name} ({question.thread}), {time.perf_counter() - begin:.1f} s: {question.question}")
        for name, answer in answers.items():
            if isinstance(answer, dict) and "error" in answer:
                print(f"  {name}: {answer['error']}")
        for check in question.checks:
            held = holds(check, answers)
            wrong += not held
            shown = ", ".join(f"{name} = {value}" for name, value in values_in(check, answers).items())
            print(f"  {'yes' if held else 'NO '} {check}   [{shown}]"[:2000])
    print(f"{len(chosen)} questions, {wrong} checks fail; {len(unanswered())} questions cannot be answered")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
