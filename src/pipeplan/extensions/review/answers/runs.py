"""Review of a run: what its traces show, and findings about it."""

from __future__ import annotations

from pathlib import Path

from pipeplan.answers.explaining.explanation import explained
from pipeplan.costs import Settings
from pipeplan.extensions.review.answers.records import ReviewedConfiguration, ReviewedRun, ReviewFinding
from pipeplan.foundation.readable import TIME_UNITS, change, percent

_UNEVEN = 0.08
"""Measured work of the heaviest rank over the mean, less 1, above which a review warns."""

_SLOWER = 0.25
"""Measured over estimated step time, less 1, above which a review warns; most predictions are nearer."""


def reviewed_run(folder: Path, configuration: ReviewedConfiguration) -> tuple[ReviewedRun, list[ReviewFinding]]:
    """Return what the traces of a run show, and findings about it.

    Raises PipeplanError for a folder without traces that can be read.
    """
    explanation = explained(str(folder), Settings())
    result = explanation.result
    unit = 1 / TIME_UNITS.get(result.time_unit, 1.0)
    step = unit * result.makespan
    work = tuple(unit * value for value in result.work)
    predicted = None if configuration.step_time_s is None else step / configuration.step_time_s - 1
    run = ReviewedRun(
        source=str(folder),
        step_time_s=step,
        predicted=predicted,
        work_by_rank_s=work,
        idle_by_rank_s=tuple(unit * value for value in result.idle),
        sentences=explanation.sentences,
    )
    return run, _findings(run, configuration)


def _findings(run: ReviewedRun, configuration: ReviewedConfiguration) -> list[ReviewFinding]:
    mean = sum(run.work_by_rank_s) / len(run.work_by_rank_s)
    heaviest = max(range(len(run.work_by_rank_s)), key=run.work_by_rank_s.__getitem__)
    uneven = run.work_by_rank_s[heaviest] / mean - 1 if mean else 0.0
    pipeline = configuration.settings.get("pp")
    faults = []
    if pipeline and pipeline != len(run.work_by_rank_s):
        message = f"the traces have {len(run.work_by_rank_s)} pipeline ranks, and the configuration {pipeline}"
        faults.append(("run-of-other-ranks", message, "pass the traces of a run of this configuration"))
    if uneven > _UNEVEN:
        message = f"in the run, rank {heaviest} worked {percent(uneven)} longer than the mean of the ranks"
        remedy = "move layers from it to other ranks; `pipeplan profile --from` gives the costs for a search"
        faults.append(("measured-unbalanced", message, remedy))
    if run.predicted is not None and run.predicted > _SLOWER:
        message = f"the run's step took {run.step_time_s:.3g} s, {change(run.predicted)} of the estimate"
        faults.append(
            ("measured-slower", message, "look at the longest waits: `pipeplan explain` of the traces names them")
        )
    return [
        ReviewFinding(
            rule=rule,
            severity="warning",
            question="loses",
            where=run.source,
            file=run.source,
            line=0,
            message=message,
            remedy=remedy,
            source="traces of the run",
            configuration=configuration.name,
            configuration_file=configuration.file,
        )
        for rule, message, remedy in faults
    ]
