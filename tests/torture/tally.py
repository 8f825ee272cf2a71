"""What came of a run: counts by suite, and each finding once with the line that reproduces it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.torture.suite import Suite
from tests.torture.worker import Verdict

_TOLD = 8
"""Kinds of findings that a suite tells a line of; one fault may be found in a hundred words."""


@dataclass
class _Fault:
    """One sentence, and the seeds that it was found with."""

    verdict: Verdict
    seeds: list[int] = field(default_factory=list)


@dataclass
class _Counts:
    """Of one suite."""

    cases: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)


class Tally:
    """Counts verdicts; findings whose sentences differ in numbers and quoted words alone are one."""

    def __init__(self, suites: Sequence[Suite]) -> None:
        self._suites = {suite.name: suite for suite in suites}
        self._counts = {suite.name: _Counts() for suite in suites}
        self._faults: dict[tuple[str, str], _Fault] = {}
        self._notes: list[str] = []

    def add(self, verdict: Verdict) -> bool:
        """Count a verdict; whether it is a finding of a new kind, and one of the first of its suite."""
        counts = self._counts[verdict.suite]
        counts.cases += 1
        counts.seconds += verdict.seconds
        counts.outcomes[verdict.outcome] += 1
        if verdict.fault is None:
            return False
        kind = (verdict.suite, _kind(verdict.fault))
        new = kind not in self._faults
        self._faults.setdefault(kind, _Fault(verdict)).seeds.append(verdict.seed)
        return new and len(self._of(verdict.suite)) <= _TOLD

    def cut(self, suite: Suite) -> None:
        """Count a case that was ended as the time was up."""
        self._counts[suite.name].outcomes["not ended"] += 1

    def note(self, fault: str) -> None:
        """Count what is found of the run as a whole."""
        self._notes.append(fault)

    @property
    def found(self) -> int:
        """Findings, each kind once."""
        return len(self._faults) + len(self._notes)

    @property
    def cases(self) -> int:
        """Cases tried."""
        return sum(counts.cases for counts in self._counts.values())

    def _of(self, suite: str) -> list[_Fault]:
        return [fault for (name, _), fault in self._faults.items() if name == suite]

    def seconds(self, suite: str) -> float:
        """What the cases of a suite took, in seconds of a worker."""
        return self._counts[suite].seconds

    def lines(self) -> Iterator[str]:
        """The findings, and the table."""
        for suite in self._suites:
            faults = self._of(suite)
            for fault in faults[:_TOLD]:
                more = f"   (and {len(fault.seeds) - 1} more, such as seed {fault.seeds[1]})" if fault.seeds[1:] else ""
                yield reproducing(fault.verdict) + more
            if seeds := [str(fault.verdict.seed) for fault in faults[_TOLD:]]:
                yield f"{suite}: {len(seeds)} more kinds of findings, with the seeds {', '.join(seeds[:_TOLD])}"
        yield from (f"python -m tests.torture   # {note}" for note in self._notes)
        rows = [("suite", "cases", "found", "seconds", "outcomes")]
        for name, counts in self._counts.items():
            found = sum(len(fault.seeds) for (suite, _), fault in self._faults.items() if suite == name)
            absent = self._suites[name].needs()
            outcomes = ", ".join(f"{outcome} {count}" for outcome, count in counts.outcomes.most_common())
            told = f"left out: {absent}" if absent is not None else outcomes
            rows.append((name, f"{counts.cases:,}", f"{found:,}", f"{counts.seconds:.0f}", told))
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        for row in rows:
            numbers = "  ".join(cell.rjust(width) for cell, width in zip(row[1:4], widths[1:], strict=True))
            yield f"{row[0].ljust(widths[0])}  {numbers}  {row[4]}".rstrip()


def reproducing(verdict: Verdict) -> str:
    """The line that shows a finding again."""
    said = " ".join((verdict.fault or "").split())
    return f"python -m tests.torture {verdict.suite} --seed {verdict.seed} --cases 1   # {said}"


def _kind(fault: str) -> str:
    """A sentence without its numbers, quoted words and the command that it is about."""
    fault = fault.partition(": pipeplan ")[0]
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+(\.\d+)?", "_", fault)
