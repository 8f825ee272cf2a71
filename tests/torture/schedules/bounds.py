"""The suite ``bounds``: no lower bound above what is reached by any schedule at hand, or by an exact model."""

from __future__ import annotations

from random import Random

from tests.simulation.soundness.instances import instance
from tests.simulation.soundness.judge import judge, judged_case
from tests.torture import Found


def attempt(seed: int) -> None:
    """An instance with its schedules, or a small case with its exact answer, which knows nothing of the package."""
    random = Random(f"bounds {seed}")
    if random.random() < 0.5:
        violations = judged_case(seed, seconds=10.0)
    else:
        violations = judge(instance(seed), evaluations=random.choice((300, 300, 2000)))
    if violations:
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        raise Found(f"{violations[0]}{more}")
