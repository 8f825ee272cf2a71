"""What the workers do for the page of plans: from a request to the lines of the reply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pipeplan.api import fixed_chunks
from pipeplan.api.planning.planned import (
    PlanOptions,
    PlanProgress,
    cluster_of,
    costs_planned_for,
    look,
    model_of,
    plan,
    read_configuration,
)
from pipeplan.costs import missing_in
from pipeplan.drawing.html import timeline_data
from pipeplan.errors import FormatError, InputError, PipeplanError, ShapeError
from pipeplan.files import temporary_folder
from pipeplan.hardware import Cluster
from pipeplan.planner import Configuration
from pipeplan.strategies import strategy
from pipeplan.web.faults import fault
from pipeplan.web.json_answers import as_json
from pipeplan.web.plan_requests import ChosenIn, PlanIn
from pipeplan.web.records import ChosenReply, CostsOfPlan, PlanLine, PlanStatus
from pipeplan.web.replies import Reply, json_reply, refused
from pipeplan.web.request_size import MOST_OPS
from pipeplan.web.requests import FileIn
from pipeplan.web.timeline_views import choose, views

MOST_SECONDS = 60.0
"""The budget of a plan here."""

DEFAULT_SECONDS = 30.0

MOST_GPUS = 32_768
"""Of a cluster here."""


def make_plan(question: PlanIn, tell: Callable[[bytes], None]) -> None:
    """Plan, telling lines of JSON: ``progress`` as it comes, then ``plan``; or at once the ``errors`` of the question."""
    try:
        found = plan(**_asked(question), workers=1, progress=lambda progress: tell(_progress(progress)))
    except PipeplanError as error:
        tell(_line(PlanLine(errors=(fault(error),))))
        return
    tell(_line(PlanLine(plan=found)))


def look_at(question: ChosenIn) -> Reply:
    """One configuration: its estimate, its flags, and its timeline where it is not too large to draw."""
    try:
        shape, machines, configuration = read_configuration(question.document, None)
        _require_servable(machines, configuration)
        record, result = look(shape, machines, configuration)
    except PipeplanError as error:
        return refused(fault(error))
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


def _chunks(configuration: Configuration) -> dict[str, int]:
    """The chunks of a configuration where its schedule has others when nobody says, so that it is compared with its own."""
    found = strategy(configuration.schedule)
    own = fixed_chunks(found) is not None or found.chunks == configuration.chunks
    return {} if own else {"chunks": configuration.chunks}


def _require_servable(machines: Cluster, configuration: Configuration | None = None) -> None:
    """Refuse what is too large here, before any work. Raises ShapeError."""
    if machines.gpus > MOST_GPUS:
        raise ShapeError(
            f"a cluster has at most {MOST_GPUS:,} GPUs here, not {machines.gpus:,}; the command line has no such limit",
            field="cluster",
        )
    ops = 0 if configuration is None else 3 * configuration.microbatches * configuration.stages
    if ops > MOST_OPS:
        raise ShapeError(f"too large to show here: up to {ops:,} ops, and the limit is {MOST_OPS:,}", field="document")


def _asked(question: PlanIn) -> dict[str, Any]:
    """The keywords of a plan. Raises PipeplanError for what is missing or cannot be."""
    given: dict[str, Any] = question.settings.model_dump(exclude_none=True, warnings=False)
    if question.model_file is not None:
        given["model"] = ""
    if missing := missing_in(PlanOptions, given):
        raise InputError("is missing", field=missing[0])
    seconds = given.setdefault("seconds", DEFAULT_SECONDS)
    if seconds > MOST_SECONDS:
        raise InputError(
            f"seconds are at most {MOST_SECONDS:g} here; the command line has no such limit", field="seconds"
        )
    shape = model_of(given.pop("model", ""), None) if question.model_file is None else _uploaded(question.model_file)
    given.pop("model", None)
    machines = cluster_of(given["cluster"], None)
    _require_servable(machines)
    fix = given.get("fix")
    return {
        **given,
        "model": shape,
        "cluster": machines,
        "fix": fix.split() if isinstance(fix, str) else fix,
    }


def _uploaded(file: FileIn) -> Any:
    """The model of a config.json that came with the question."""
    with temporary_folder() as folder:
        path = folder / "config.json"
        path.write_text(file.text, encoding="utf-8", errors="replace")
        try:
            return replace(model_of(path.name, folder), name=file.name)
        except PipeplanError as error:
            raise FormatError(str(error).replace(str(path), f"'{file.name}'"), field="model_file") from None


def _progress(progress: PlanProgress) -> bytes:
    best = None if progress.best is None else progress.best.step_time
    said = f"{progress.phase}: {progress.estimated:,} estimated"
    return _line(PlanLine(progress=PlanStatus(share=progress.share, said=said, best_s=best)))


def _line(line: PlanLine) -> bytes:
    return as_json(line) + b"\n"
