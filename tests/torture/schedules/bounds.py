"""The suite ``bounds``: no lower bound above what is reached by any schedule at hand, or by an exact model."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.simulation.soundness.instances import instance
from tests.simulation.soundness.judge import Verdict, judge, judged_case
from tests.torture.suite import Found


def attempt(seed: int, folder: Path) -> str:
    """An instance with its schedules, or a small case with its exact answer, which knows nothing of the package."""
    random = Random(f"bounds {seed}")
    if random.random() < 0.5:
        verdict = judged_case(seed, seconds=10.0)
    else:
        evaluations, seconds = random.choice(((300, 0.2), (300, 0.2), (2000, 1.0)))
        verdict = judge(instance(seed), evaluations=evaluations, seconds=seconds)
    if verdict.violations:
        more = f" (and {len(verdict.violations) - 1} more)" if len(verdict.violations) > 1 else ""
        raise Found(f"{verdict.violations[0]}{more}, {', '.join(verdict.kinds)}")
    return _outcome(verdict)


def _outcome(verdict: Verdict) -> str:
    if verdict.gap is None:
        return "nothing fits"
    return "met" if verdict.gap < 1e-9 else "not met"
