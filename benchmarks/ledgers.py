"""How well the factors of a few runs predict the other runs of the same source, GPU and trainer.

Run with ``python -m benchmarks.ledgers``. Of each group of published runs, a few at random are a ledger, and others are
predicted with its factors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import log
from statistics import fmean

import numpy as np

from benchmarks.published_runs.sources import published, source_of
from pipeplan.extensions.planning.runs.factors import TENTH, TriedRun, fitted
from pipeplan.foundation.errors import PipeplanError

TRIED, PREDICTED = 4, 8
"""Runs of a ledger, and the most that are predicted."""


def groups() -> list[list[TriedRun]]:
    """Return the runs of each source, GPU and trainer, of at least three more than a ledger has."""
    rows, _ = published()
    runs: dict[tuple[str, str, str], list[TriedRun]] = defaultdict(list)
    for row in rows:
        if row.model is None or row.cluster is None or row.configuration is None or not row.measured.step_time:
            continue
        run = TriedRun(
            id=row.id,
            model=row.model,
            cluster=row.cluster,
            configuration=row.configuration,
            seconds=row.measured.step_time,
        )
        try:
            run.estimate()
        except PipeplanError:
            continue
        runs[source_of(row), str(row.cluster.gpu), row.configuration.software].append(run)
    return [group for group in runs.values() if len(group) >= TRIED + 3]


def tested(group: Sequence[TriedRun], seed: int) -> tuple[float, float, float, float]:
    """Return the mean errors without factors, with one common factor and with those of the fit, and the coverage of 80 %."""
    order = np.random.default_rng(seed).permutation(len(group))[: TRIED + PREDICTED]
    ledger, others = ([group[place] for place in part] for part in (order[:TRIED], order[TRIED:]))
    fit = fitted(ledger)
    common = fmean(_off(run) for run in ledger)
    plain = [_off(run) for run in others]
    scaled = [log((run.seconds or 1.0) / run.estimate(fit.calibration).step_time) for run in others]
    within = [abs(off) < TENTH * fit.spread(run) for off, run in zip(scaled, others, strict=True)]
    return fmean(map(abs, plain)), fmean(abs(off - common) for off in plain), fmean(map(abs, scaled)), fmean(within)


def _off(run: TriedRun) -> float:
    return log((run.seconds or 1.0) / run.estimate().step_time)


def main() -> None:
    """Print the means over all groups."""
    results = np.array([tested(group, seed) for seed, group in enumerate(groups())])
    before, common, after, within = results.mean(axis=0)
    print(
        f"{len(results)} groups: {before:.1%} without factors, {common:.1%} with a common one, {after:.1%} with those of "
        f"{TRIED} runs; {within:.0%} within intervals of 80%"
    )


if __name__ == "__main__":
    main()
