"""Factors of a machine from the steps of a few runs: a ridge regression in logarithms, with its uncertainty.

The logarithm of the factor of a kind of work is the sum of a part that all kinds share and of a part of its own, both with a
normal prior around 0. The logarithms of the measured steps are linearized in these parts (Gauss-Newton), so that mean and
covariance are those of Bayesian linear regression (Rasmussen and Williams, Gaussian Processes for Machine Learning, section
2.1). The own part of a kind stays at its prior if the runs do not determine it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt

import numpy as np

from pipeplan.extensions.planning.calibration import Calibration, Correction
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.error_bars import table
from pipeplan.extensions.planning.estimates.estimating import estimate
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.results import Estimate
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.foundation.errors import InputError
from pipeplan.model import Floats, counted

SHARED = 0.1
"""Standard deviation of the prior of the shared part, in logarithms: that between the sources of published runs."""

OWN = {"gemm": 0.1} | dict.fromkeys(("grouped_gemm", "attention", "memory"), 0.2)
OWN |= {"optimizer": 0.3, "collective": 0.3, "network": 0.5}
"""The same of the own parts. Products are the best known; networks vary with topology, congestion and settings."""

LEVELS, NOISE, NOISE_WIDTH = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12), 0.05, 0.7
"""Possible standard deviations of a measured step around its prediction, in logarithms; their log-normal prior."""

DETERMINED = 0.6
"""Fraction of its prior standard deviation below which the factor of a kind of work is determined by the runs."""

SENSITIVE = 0.002
"""Least relative change of a step by that of a factor from which a kind of work takes part in a run."""

UNLIKELY, CONTRADICTORY = 20.0, 1.25
"""Ratio of a measured step to its prediction from which it is no measurement of that run; the same of two measurements."""

TENTH = 1.2816
"""Standard deviations from the median to the last tenth of a normal distribution."""

_STEP, _ROUNDS = 1e-3, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRun:
    """Run that was tried, with its measured step in seconds (None: it ran out of memory) and its allocated peak."""

    id: str
    model: ModelShape
    cluster: Cluster
    configuration: Configuration
    seconds: float | None
    peak_gib: float | None = None

    def estimate(self, calibration: Calibration | None = None) -> Estimate:
        """Return the estimate of its configuration."""
        return estimate(self.model, self.cluster, self.configuration, calibration=calibration, with_error_bar=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MachineFit:
    """Factors of the ``kinds`` of work in the runs of a ledger; those ``undetermined`` by them have the shared part only.

    Attributes
    ----------
    noise
        Standard deviation of a measured step around its prediction, in logarithms: the most probable level.
    before, after
        Mean distance of the measured steps from their predictions, as a fraction, without and with the factors.
    covariance
        Covariance of the shared part and of the kinds' own parts.
    memory
        Mean and standard deviation of the logarithm of measured over predicted peak memory.
    """

    calibration: Calibration
    undetermined: tuple[str, ...]
    noise: float
    before: float
    after: float
    kinds: tuple[str, ...]
    covariance: Floats
    memory: tuple[float, float]

    def spread(self, run: TriedRun) -> float:
        """Return the standard deviation of the logarithm of a run's step time."""
        _, slopes = _linearized(run, self.kinds, self.calibration)
        return sqrt(float(slopes @ self.covariance @ slopes) + self.noise**2)


def fitted(runs: Sequence[TriedRun], *, base: Calibration | None = None) -> MachineFit:
    """Return the factors that the measured steps of runs determine, as corrections of those of ``base``.

    Raises InputError if no run has a measured step or the GPUs differ, PipeplanError if a configuration has no estimate.
    """
    timed = [run for run in runs if run.seconds is not None]
    if not timed:
        raise InputError("no run has a measured step: add 'measured', a duration or a log, to one", field="runs")
    gpu = runs[0].cluster.gpu
    if other := next((run for run in runs if run.cluster.gpu != gpu), None):
        words = f"{other.id} has the GPU {other.cluster.gpu.name}, others {gpu.name}: keep a ledger per GPU"
        raise InputError(words, field="runs")
    start = base or Calibration(gpu=gpu.name, corrections=())
    start.require(gpu)
    _require_plausible(timed, start)
    effects = np.array([_linearized(run, tuple(OWN), start)[1] for run in timed]).max(axis=0)[1:]
    kinds = tuple(kind for kind, effect in zip(OWN, effects, strict=True) if effect > SENSITIVE)
    measured = np.log([run.seconds or 1.0 for run in timed])
    prior = np.array([SHARED, *(OWN[kind] for kind in kinds)])
    parts, noise = np.zeros(len(prior)), NOISE
    for _ in range(_ROUNDS):
        now = _with(start, kinds, parts)
        steps, by_run = zip(*(_linearized(run, kinds, now) for run in timed), strict=True)
        predicted, slopes = np.array(steps), np.array(by_run)
        off = measured - predicted + slopes @ parts
        noise = _likeliest_noise(off, slopes * prior)
        covariance = np.linalg.inv(slopes.T @ slopes / noise**2 + np.diag(prior**-2.0))
        parts = covariance @ slopes.T @ off / noise**2
    # Rows add the shared part to each own part.
    totals = np.column_stack([np.ones(len(kinds)), np.eye(len(kinds))])
    spreads, priors = (np.sqrt(np.diag(totals @ part @ totals.T)) for part in (covariance, np.diag(prior**2)))
    determined = spreads < DETERMINED * priors
    scaled = _with(start, kinds, np.array([parts[0], *np.where(determined, parts[1:], 0.0)]))
    before, after = (
        float(np.mean([abs(run.estimate(each).step_time / (run.seconds or 1.0) - 1.0) for run in timed]))
        for each in (start, scaled)
    )
    words = counted(len(timed), "run")
    # Seconds of each kind in the steps of the runs, as far as the steps depend on it.
    seconds = slopes[:, 1:].T @ np.exp(predicted)
    factors = {correction.kind: correction.factor for correction in scaled.corrections}
    corrections = [
        Correction(
            kind=kind,
            measured=max(float(time), _STEP) * factors[kind],
            analytic=max(float(time), _STEP),
            source=f"{words}, {'own' if known else 'as all work'}",
            uncertainty=float(spread),
        )
        for kind, time, known, spread in zip(kinds, seconds, determined, spreads, strict=True)
    ]
    return MachineFit(
        calibration=replace(start.with_corrections(corrections), measured_on=words),
        undetermined=tuple(kind for kind, known in zip(kinds, determined, strict=True) if not known),
        noise=noise,
        before=before,
        after=after,
        kinds=kinds,
        covariance=covariance,
        memory=_memory(runs),
    )


def _require_plausible(timed: Sequence[TriedRun], calibration: Calibration) -> None:
    """Raise InputError if a step is of another unit or run, or if runs of one configuration contradict each other."""
    for place, run in enumerate(timed):
        seconds, predicted = run.seconds or 0.0, run.estimate(calibration).step_time
        if not 1 / UNLIKELY < seconds / predicted < UNLIKELY:
            raise InputError(
                f"{run.id} took {seconds:.4g} s for the predicted {predicted:.4g} s: check its unit, model and batch",
                field="runs",
            )
        for other in timed[:place]:
            same = (run.model, run.cluster, run.configuration) == (other.model, other.cluster, other.configuration)
            ratio = seconds / (other.seconds or seconds)
            if same and not 1 / CONTRADICTORY < ratio < CONTRADICTORY:
                raise InputError(
                    f"{other.id} and {run.id} have the same configuration, but took {other.seconds:.4g} s and "
                    f"{seconds:.4g} s: keep the one without other jobs, slow nodes or warm-up",
                    field="runs",
                )


def _with(calibration: Calibration, kinds: Sequence[str], parts: Floats) -> Calibration:
    """Return a calibration whose factors are multiplied by those of the shared part and of the own parts."""
    before = {correction.kind: correction.factor for correction in calibration.corrections}
    before.setdefault("network", before.get("collective", 1.0))
    return calibration.with_corrections(
        Correction(kind=kind, measured=before.get(kind, 1.0) * exp(parts[0] + part), analytic=1.0)
        for kind, part in zip(kinds, parts[1:], strict=True)
    )


def _linearized(run: TriedRun, kinds: Sequence[str], calibration: Calibration) -> tuple[float, Floats]:
    """Return the logarithm of a predicted step, and its derivatives by the shared part and by each own part."""
    steps = _STEP * np.eye(1 + len(kinds))
    steps[0] = 0.0
    here, *moved = (log(run.estimate(_with(calibration, kinds, parts)).step_time) for parts in steps)
    own = [there - here for there in moved]
    return here, np.array([sum(own), *own]) / _STEP


def _likeliest_noise(off: Floats, scaled: Floats) -> float:
    """Return the level with the highest posterior; ``scaled`` are the slopes times the prior standard deviations."""

    def score(level: float) -> float:
        covariance = scaled @ scaled.T + level**2 * np.eye(len(off))
        data = off @ np.linalg.solve(covariance, off) + np.linalg.slogdet(covariance)[1]
        return float(-0.5 * data - 0.5 * (log(level / NOISE) / NOISE_WIDTH) ** 2)

    return max(LEVELS, key=score)


def _memory(runs: Sequence[TriedRun]) -> tuple[float, float]:
    """Return mean and standard deviation of the logarithm of measured over predicted peak memory.

    The prior is the range of published runs; the noise of one run is half as wide.
    """
    width = max(abs(log(table().memory.low)), abs(log(table().memory.high)), 0.01) / TENTH
    off = [log(run.peak_gib / run.estimate().peak_memory_gib) for run in runs if run.peak_gib]
    variance = 1.0 / (width**-2 + len(off) / (width / 2) ** 2)
    return variance * sum(off) / (width / 2) ** 2, sqrt(variance + (width / 2) ** 2)
