"""Search against the independent model, on as many random cases as one likes.

``python -m tests.solver.torture --instances 1000 --seed 0 --workers 2`` judges the cases of seeds 0 to 999 and prints every
violation with the command that shows it, and the counts; Ctrl-C ends it with the counts so far. ``--seed N --instances 1``
judges one of them again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.solver.case import Case, whole
from tests.solver.independent_model import Answer
from tests.solver.judge import Verdict, Violation, judge
from tests.solver.known_cases import KNOWN
from tests.solver.random_cases import random_case

PATIENCE = 60.0
"""Seconds beyond its budget after which a search counts as hanging."""


@dataclass(frozen=True)
class Outcome:
    """A verdict as plain data, to be sent between processes."""

    name: str
    tags: tuple[str, ...]
    command: str
    violations: tuple[Violation, ...]
    status: str
    disagreed: bool
    excess: float | None
    optimal: bool
    answered: bool
    found_by: str
    seconds: float


def tags(case: Case) -> Iterator[str]:
    """The kinds of a case."""
    halves = [one + other for one, other in zip(case.inputs, case.weights, strict=True)]
    for name, holds in {
        "B < I+W": any(full < half for full, half in zip(case.backward, halves, strict=True)),
        "B <= I": any(full <= half for full, half in zip(case.backward, case.inputs, strict=True)),
        "B > I+W": any(full > half for full, half in zip(case.backward, halves, strict=True)),
        "overlap": case.overlap is not None,
        "transfer": case.transfer > 0,
        "uneven stages": len(set(zip(case.forward, case.backward, case.inputs, case.weights, strict=True))) > 1,
        "span": case.objective == "span",
        "full backward": not case.split,
    }.items():
        if holds:
            yield name
    if case.limits is None:
        yield "no limit"
        return
    activation, kept = case.held()
    yield "limit in activations" if case.in_activations else "limit in bytes"
    for name, holds in {
        "limits per rank": len(set(case.limits)) > 1,
        "static": case.static is not None and not case.in_activations,
        "W frees more than all": any(part > one for part, one in zip(kept, activation, strict=True)),
        "W frees a part": any(0 < part < one for part, one in zip(kept, activation, strict=True)),
        "W frees nothing": any(part == 0 for part in kept),
    }.items():
        if holds:
            yield name


def outcome(name: str, case: Case, budget: dict[str, Any], model_seconds: float) -> Outcome:
    """Judge a case; a search that does not end is a violation too."""
    before = time.monotonic()
    command = " ".join([case.command(), "--workers 1", *(f"--{key} {value}" for key, value in budget.items())])
    kinds = tuple(tags(case))
    try:
        with _alarm(model_seconds + budget.get("seconds", 0.0) + PATIENCE):
            verdict = judge(case, model_seconds=model_seconds, **budget)
    except TimeoutError:
        violation = Violation("hang", f"no answer {PATIENCE:g} s after the budget was spent")
        verdict = Verdict(case, Answer(whole(case), "unknown", 0), [violation])
    return _outcome(name, kinds, command, verdict, time.monotonic() - before)


def _outcome(name: str, kinds: tuple[str, ...], command: str, verdict: Verdict, seconds: float) -> Outcome:
    return Outcome(
        name,
        kinds,
        command,
        tuple(verdict.violations),
        verdict.answer.status,
        verdict.answer.disagreed,
        verdict.excess,
        verdict.optimal,
        verdict.value is not None,
        verdict.found_by,
        seconds,
    )


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@dataclass
class Tally:
    """What happened so far."""

    judged: int = 0
    status: Counter[str] = field(default_factory=Counter)
    disagreed: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    violated_kinds: Counter[str] = field(default_factory=Counter)
    optimal: int = 0
    answered: int = 0
    reached: int = 0
    above: list[tuple[float, str]] = field(default_factory=list)

    def add(self, found: Outcome) -> None:
        self.judged += 1
        self.status[found.status] += 1
        self.disagreed += found.disagreed
        self.kinds.update(found.tags)
        self.violations.update({violation.kind for violation in found.violations})
        self.violated_kinds.update(found.tags if found.violations else ())
        self.optimal += found.optimal
        self.answered += found.answered
        if found.excess is not None:
            self.reached += found.excess == 0
            if found.excess > 0:
                self.above.append((found.excess, found.name))

    def lines(self) -> Iterator[str]:
        """The closing note."""
        status = self.status
        yield (
            f"{self.judged} cases: {status['optimal']} with a proven optimum, {status['infeasible']} that nothing fits, "
            f"{status['unknown']} on which the model ran out of time, {self.disagreed} on which CP-SAT took back a proof"
        )
        yield f"the search answered {self.answered}, and said of {self.optimal} that its answer is optimal"
        yield f"of the proven optima it reached {self.reached} and stayed above {len(self.above)}"
        for excess, name in sorted(self.above, reverse=True)[:10]:
            yield f"  {name}: {excess:.2%} above"
        yield "cases with a violation, by kind of the violation: " + (_counts(self.violations) or "none")
        yield "cases by kind (with a violation):"
        for kind, count in self.kinds.most_common():
            yield f"  {kind}: {count} ({self.violated_kinds[kind]})"


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in counter.most_common())


def main(arguments: list[str] | None = None) -> int:
    """Judge the cases asked for; the exit code is 1 where there was a violation."""
    asked = _parser().parse_args(arguments)
    budget = {"evaluations": asked.evaluations} if asked.evaluations is not None else {"seconds": asked.seconds}
    cases = {str(seed): random_case(seed) for seed in range(asked.seed, asked.seed + asked.instances)}
    if asked.known:
        cases |= {name: case for name, (case, _) in KNOWN.items()}
    tally, before = Tally(), time.monotonic()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(asked.workers, mp_context=context) as pool:
        jobs = [pool.submit(outcome, name, case, budget, asked.model_seconds) for name, case in cases.items()]
        try:
            for job in as_completed(jobs):
                found = job.result()
                tally.add(found)
                _show(found, f"{tally.judged}/{len(cases)}", time.monotonic() - before)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
    print("\n".join(tally.lines()))
    return 1 if tally.violations else 0


def _show(found: Outcome, progress: str, seconds: float) -> None:
    if found.violations:
        print(f"case {found.name} [{', '.join(found.tags)}]")
        for violation in found.violations:
            print(f"  {violation}")
        again = f"; python -m tests.solver.torture --instances 1 --seed {found.name}" if found.name.isdigit() else ""
        print(f"  {found.command}{again}", flush=True)
    print(f"\r{progress} cases, {seconds:.0f} s ", end="", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.solver.torture", description=__doc__)
    parser.add_argument("--instances", type=int, default=1000, help="how many random cases (1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first one (0)")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--seconds", type=float, default=2.5, help="budget of a search (2.5)")
    parser.add_argument("--evaluations", type=int, help="budget of a search in schedules tried, in place of seconds")
    parser.add_argument("--model-seconds", type=float, default=20.0, help="time for the exact answer (20)")
    parser.add_argument("--known", action="store_true", help="also the cases that were wrong once")
    return parser


if __name__ == "__main__":
    sys.exit(main())
