"""Work of the server's processes for the pages of plans and reviews: from a request to the lines of the reply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pipeplan.answers import fixed_chunks
from pipeplan.costs import missing_in
from pipeplan.drawing.html import timeline_data
from pipeplan.extensions.planning import Configuration, PlanProgress
from pipeplan.extensions.planning.answers.one_configuration import costs_planned_for, look
from pipeplan.extensions.planning.answers.options import PlanOptions
from pipeplan.extensions.planning.answers.planned import plan
from pipeplan.extensions.planning.flags import cluster_of, model_of, read_configuration
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.review.answers.review import ReviewOptions, reviewed_text
from pipeplan.extensions.web.faults import as_json
from pipeplan.extensions.web.records import ChosenReply, CostsOfPlan, PlanLine, PlanStatus
from pipeplan.extensions.web.replies import Reply, json_reply
from pipeplan.extensions.web.requests import ChosenIn, FileIn, PlanIn, ReviewIn, given
from pipeplan.extensions.web.schedules import MOST_OPS, choose, views
from pipeplan.foundation.errors import FormatError, InputError, PipeplanError, ShapeError
from pipeplan.foundation.files import temporary_folder
from pipeplan.strategies import strategy

MOST_GPUS = 32_768
"""Maximum number of GPUs of a cluster on this server."""


def make_plan(request: PlanIn, tell: Callable[[bytes], None]) -> None:
    """Choose a configuration; send lines of JSON: ``progress`` repeatedly, then ``plan``."""
    result = plan(**_keywords(request), workers=1, progress=lambda progress: tell(_progress(progress)))
    tell(_line(PlanLine(plan=result)))


def look_at(request: ChosenIn) -> Reply:
    """Return the estimate, the flags, and a timeline of one configuration, unless it is too large to draw."""
    shape, machines, configuration = read_configuration(request.document, None)
    _require_small(machines, configuration)
    record, result = look(shape, machines, configuration)
    drawn, _ = choose([result], None)
    timeline = timeline_data(views(drawn, reasons=False)) if drawn else None
    costs = costs_planned_for(shape, machines, configuration)
    return json_reply(
        ChosenReply(
            estimate=record,
            timeline=timeline,
            idle=result.bubble.idle_over_total,
            compare=CostsOfPlan(
                settings=dict(costs.settings) | _chunks(configuration), schedule=configuration.schedule
            ),
        )
    )


def review(request: ReviewIn) -> Reply:
    """Return what is wrong with a configuration's text."""
    values = given(request.settings)
    if "model" in values:
        values["model"] = model_of(values["model"], None)
    if "cluster" in values:
        values["cluster"] = cluster_of(values["cluster"], None)
        _require_small(values["cluster"])
    return json_reply(reviewed_text(request.content, request.name, ReviewOptions(**values)))


def _chunks(configuration: Configuration) -> dict[str, int]:
    """Return the chunks of a configuration as a setting, if they differ from its schedule's default."""
    schedule = strategy(configuration.schedule)
    default = fixed_chunks(schedule) is not None or schedule.chunks == configuration.chunks
    return {} if default else {"chunks": configuration.chunks}


def _require_small(machines: Cluster, configuration: Configuration | None = None) -> None:
    """Raise ShapeError for a cluster or a configuration that is too large for this server, before any work."""
    if machines.gpus > MOST_GPUS:
        raise ShapeError(
            f"a cluster has at most {MOST_GPUS:,} GPUs here, not {machines.gpus:,}; the command line has no such limit",
            field="cluster",
        )
    ops = 0 if configuration is None else 3 * configuration.microbatches * configuration.stages
    if ops > MOST_OPS:
        raise ShapeError(f"too large to show here: up to {ops:,} ops, and the limit is {MOST_OPS:,}", field="document")


def _keywords(request: PlanIn) -> dict[str, Any]:
    """Return the keywords of a plan. Raises PipeplanError for missing and invalid values."""
    values: dict[str, Any] = given(request.settings)
    if request.model_file is not None:
        values["model"] = ""
    if missing := missing_in(PlanOptions, values):
        raise InputError("is missing", field=missing[0])
    shape = model_of(values.pop("model", ""), None) if request.model_file is None else _uploaded(request.model_file)
    values.pop("model", None)
    machines = cluster_of(values["cluster"], None)
    _require_small(machines)
    fix = values.get("fix")
    return {
        **values,
        "model": shape,
        "cluster": machines,
        "fix": fix.split() if isinstance(fix, str) else fix,
    }


def _uploaded(file: FileIn) -> Any:
    with temporary_folder() as folder:
        path = folder / "config.json"
        path.write_text(file.text, encoding="utf-8", errors="replace")
        try:
            return replace(model_of(path.name, folder), name=file.name)
        except PipeplanError as error:
            raise FormatError(str(error).replace(str(path), f"'{file.name}'"), field="model_file") from None


def _progress(progress: PlanProgress) -> bytes:
    best = None if progress.best is None else progress.best.step_time
    status = f"{progress.phase}: {progress.estimated:,} estimated"
    return _line(PlanLine(progress=PlanStatus(share=progress.share, said=status, best_s=best)))


def _line(line: PlanLine) -> bytes:
    return as_json(line) + b"\n"
