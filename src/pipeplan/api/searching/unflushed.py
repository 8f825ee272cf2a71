"""Steps of a published schedule without a flush between them, as with weights that are updated one step late.

PipeDream-2BW (Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, 2021, arXiv:2006.09503, section 3.1) runs
1F1B without end. The microbatches of a step still compute with the weights from before the update of the step before, so
the step need not wait for that update, and the pipeline is filled and drained only once per run. Each rank keeps two
versions of its weights. A step of m microbatches then takes m periods of the schedule. It is the same order of ops as one
step of very many microbatches, so its period is what each further microbatch adds to the makespan of a long one.
"""

from __future__ import annotations

from pipeplan.api.simulating.result import Result
from pipeplan.api.simulating.simulate import simulated
from pipeplan.api.sources import as_taken_by
from pipeplan.costs import Settings
from pipeplan.errors import InfeasibleError, InputError
from pipeplan.records import Record
from pipeplan.strategies import Strategy

ROUND_TRIPS = 6
"""Length of a run in round trips of the pipeline, so that its middle has forgotten both ends."""

WEIGHT_VERSIONS = 2
"""Versions of its weights that a rank keeps: a backward uses those of its forward, from before the last update."""


class UnflushedSteps(Record, frozen=True, kw_only=True):
    """Steps of a schedule that follow each other without a flush; times are in the unit of the answer.

    ``with_flush`` is the time of one step alone; ``peak_activations`` is the peak of the rank that holds the most.
    """

    schedule: str
    microbatches: int
    step: float
    with_flush: float
    peak_activations: float
    weight_versions: int = WEIGHT_VERSIONS


def unflushed_steps(rule: Strategy, settings: Settings, microbatches: int) -> tuple[UnflushedSteps, float]:
    """Return the steps of a strategy without a flush, and the least time for each microbatch: the work of a rank.

    Raises
    ------
    InputError
        If the strategy has no order without end, because it depends on costs or holds more the longer a step is.
    InfeasibleError
        If it holds more than the memory limit.
    """
    if rule.looks_at_costs:
        raise InputError(f"{rule.name} plans a whole step, so it has no order without end", field="schedule")

    def run(number: int) -> Result:
        return simulated(rule, as_taken_by(rule, settings).replace(microbatches=number))

    one = run(microbatches)
    stages = one.schedule.stages
    steps = -(-ROUND_TRIPS * 2 * stages // microbatches)
    short, long = run(steps * microbatches), run(2 * steps * microbatches)
    held, before = (float(result.memory.peak_activation.max()) for result in (long, short))
    if held > before * (1 + 1e-9):
        raise InputError(
            f"{rule.name} has no steady state: it holds more activations the longer a step is", field="schedule"
        )
    if not long.fits:
        raise InfeasibleError(
            f"the steady state of {rule.name} holds up to {held:.4g} activations on a rank, more than the memory limit"
        )
    found = UnflushedSteps(
        schedule=rule.name,
        microbatches=microbatches,
        step=(long.makespan - short.makespan) / steps,
        with_flush=one.makespan,
        peak_activations=held,
    )
    return found, float(one.timeline.makespan - one.timeline.idle.min()) / microbatches
