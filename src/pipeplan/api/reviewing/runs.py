"""The traces of a run of a reviewed configuration: whether it ran as estimated, and where it lost time."""

from __future__ import annotations

from pathlib import Path

from pipeplan.api.explaining.explanation import explained
from pipeplan.api.reviewing.findings import ReviewedConfiguration, ReviewedRun, ReviewFinding
from pipeplan.costs import Settings
from pipeplan.model import TIME_UNITS
from pipeplan.readable import change, percent

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
    findings = []
    mean = sum(run.work_by_rank_s) / len(run.work_by_rank_s)
    heaviest = max(range(len(run.work_by_rank_s)), key=run.work_by_rank_s.__getitem__)
    uneven = run.work_by_rank_s[heaviest] / mean - 1 if mean else 0.0
    pipeline = configuration.settings.get("pp")
    if pipeline and pipeline != len(run.work_by_rank_s):
        findings.append(
            _finding(
                run, configuration, "run-of-other-ranks",
                f"the traces have {len(run.work_by_rank_s)} pipeline ranks, and the configuration {pipeline}",
                "pass the traces of a run of this configuration",
            )
        )  # fmt: skip
    if uneven > _UNEVEN:
        findings.append(
            _finding(
                run, configuration, "measured-unbalanced",
                f"in the run, rank {heaviest} worked {percent(uneven)} longer than the mean of the ranks",
                "move layers from it to other ranks; `pipeplan profile --from` gives the costs for a search",
            )
        )  # fmt: skip
    if run.predicted is not None and run.predicted > _SLOWER:
        findings.append(
            _finding(
                run, configuration, "measured-slower",
                f"the run's step took {run.step_time_s:.3g} s, {change(run.predicted)} of the estimate",
                "look at the longest waits: `pipeplan explain` of the traces names them",
            )
        )  # fmt: skip
    return findings


def _finding(
    run: ReviewedRun, configuration: ReviewedConfiguration, rule: str, message: str, remedy: str
) -> ReviewFinding:
    return ReviewFinding(
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
    )
