"""Plans: what the app shows of the extension ``planning``. A request becomes the reply, or its lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import FastAPI
from fastapi.responses import Response
from msgspec import UNSET, Meta, UnsetType, field
from pydantic import BaseModel, Field

from pipeplan.answers import fixed_chunks
from pipeplan.costs import missing_in, table_of
from pipeplan.drawing import DARK, LIGHT, MEMORY_PARTS, TIME_PARTS, Like
from pipeplan.drawing.html import timeline_data
from pipeplan.extensions.planning import Configuration, GpuMemory, PlanProgress, StepTime
from pipeplan.extensions.planning.answers.one_configuration import ChosenConfiguration, costs_planned_for, look
from pipeplan.extensions.planning.answers.options import PlanOptions
from pipeplan.extensions.planning.answers.planned import plan
from pipeplan.extensions.planning.answers.plans import Plan
from pipeplan.extensions.planning.answers.presets import gpus, models
from pipeplan.extensions.planning.flags import cluster_of, model_of, read_configuration
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.web.faults import json_line
from pipeplan.extensions.web.forms import FormOut, form_of
from pipeplan.extensions.web.records import Fault, FormSettings, TimelineData, replied
from pipeplan.extensions.web.replies import Reply, json_reply
from pipeplan.extensions.web.requests import SECONDS, FileIn, RequestRecord, given, of_schema, served
from pipeplan.extensions.web.routes import AppPart, body_of, in_lines, post, response
from pipeplan.extensions.web.schedules import MOST_OPS, choose, views
from pipeplan.extensions.web.streams import streamed
from pipeplan.extensions.web.workers import Pools, Tell
from pipeplan.foundation.errors import FormatError, InputError, PipeplanError, ShapeError
from pipeplan.foundation.files import temporary_folder
from pipeplan.foundation.records import Record, titles_of
from pipeplan.strategies import strategy

_NODES = 8
"""Number of nodes of suggested clusters."""

MOST_GPUS = 32_768
"""Maximum number of GPUs of a cluster on this server."""

_OPTIONS = served(
    PlanOptions, (name for name, setting in table_of(PlanOptions).items() if setting.in_form), seconds=SECONDS
)


# Requests and replies.


class PlanIn(RequestRecord, frozen=True, kw_only=True):
    """Plan to make."""

    named = _OPTIONS

    settings: Annotated[dict[str, Any], of_schema("PlanSettingsIn", "Options, by the names of the shell.")] = field(
        default_factory=dict
    )
    model_file: Annotated[FileIn, Meta(description="config.json, instead of a model's name.")] | None = None


_DEEPEST = 16
"""Maximum nesting of a configuration; valid ones have four levels."""

_MOST_VALUES = 50_000
"""Maximum number of values of a configuration, layouts included."""


class ChosenIn(RequestRecord, frozen=True, kw_only=True):
    """Configuration to look at."""

    document: Annotated[dict[str, Any], Meta(description="`document` of a plan, or a configuration file's content.")]

    def faults(self) -> Iterator[Fault]:
        """Yield a fault for more values or levels than a configuration has: it is copied and sent to a process."""
        level: list[Any] = [self.document]
        values = 0
        for _ in range(_DEEPEST):
            values += sum(map(len, level))
            if values > _MOST_VALUES:
                yield Fault(field="document", message=f"holds more than {_MOST_VALUES:,} values")
                return
            level = [value for group in level for value in (group.values() if isinstance(group, dict) else group)]
            level = [value for value in level if isinstance(value, (dict, list))]
        if level:
            yield Fault(field="document", message=f"holds more than {_DEEPEST} nested groups")


class CostsOfPlan(Record, frozen=True, kw_only=True):
    """Settings with which to compare schedules on a configuration's costs."""

    settings: FormSettings
    schedule: str


class ChosenReply(Record, frozen=True, kw_only=True):
    """One configuration: its estimate as a row of ``pipeplan estimate --json`` with ``flags`` by trainer, and its timeline.

    ``idle`` is the idle time of all ranks as a share of all their time. A single rank has no timeline, and neither has a
    schedule that is too large to draw.
    """

    estimate: ChosenConfiguration
    timeline: TimelineData | None
    idle: float
    compare: CostsOfPlan


class PlanStatus(Record, frozen=True, kw_only=True):
    """Progress of a plan as a share and in words, and the step time of its best configuration so far."""

    share: float
    said: str
    best_s: float | None


class PlanLine(Record, frozen=True, kw_only=True):
    """One line while a plan is made: ``progress``, then the ``plan``; or ``errors``."""

    progress: PlanStatus | UnsetType = UNSET
    plan: Plan | UnsetType = UNSET
    errors: tuple[Fault, ...] | UnsetType = UNSET


class ShareOut(BaseModel):
    """A part of a bar."""

    key: str = Field(description="Key in `breakdown`, without its unit.")
    title: str
    light: str = Field(description="Its colour on a light page.")
    dark: str


class PlanFormOut(FormOut):
    """All groups and fields of a plan, and the parts of its bars of time and memory."""

    time: list[ShareOut]
    memory: list[ShareOut]


# Work of the server's processes.


def make_plan(request: PlanIn, tell: Tell) -> None:
    """Choose a configuration; send lines of JSON: ``progress`` repeatedly, then ``plan``."""
    result = plan(**_keywords(request), workers=1, progress=lambda progress: tell(_progress(progress)))
    tell(json_line(PlanLine(plan=result)))


def look_at(request: ChosenIn) -> Reply:
    """Return the estimate, the flags, and a timeline of one configuration, if it has a pipeline that can be drawn."""
    shape, machines, configuration = read_configuration(request.document, None)
    require_small(machines, configuration)
    record, result = look(shape, machines, configuration)
    drawn = choose([result], None)[0] if configuration.pipeline > 1 else []
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
    """Return the chunks of a configuration as a setting, if they differ from its schedule's default."""
    schedule = strategy(configuration.schedule)
    default = fixed_chunks(schedule) is not None or schedule.chunks == configuration.chunks
    return {} if default else {"chunks": configuration.chunks}


def require_small(machines: Cluster, configuration: Configuration | None = None) -> None:
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
    require_small(machines)
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
    return json_line(PlanLine(progress=PlanStatus(share=progress.share, said=status, best_s=best)))


# The form, and the routes.


def plan_form() -> PlanFormOut:
    """Return the form of all options of a plan."""
    settings = [setting for setting in table_of(PlanOptions).values() if setting.in_form]
    return PlanFormOut(
        **dict(form_of(settings, suggested())),
        time=_shares(StepTime, TIME_PARTS),
        memory=_shares(GpuMemory, MEMORY_PARTS),
    )


def suggested() -> dict[str, list[str]]:
    """Return common values of options of a plan or a review."""
    return {
        "model": [model.name for model in models()],
        "cluster": [f"{sheet.gpu.name}:{sheet.node.per_node}x{_NODES}" for sheet in gpus()],
    }


def _shares(record: type[Record], parts: Mapping[str, Like]) -> list[ShareOut]:
    titles = titles_of(record)
    return [
        ShareOut(key=key, title=titles[key], light=LIGHT.part(like), dark=DARK.part(like))
        for key, like in parts.items()
    ]


def _add_routes(app: FastAPI, pools: Pools) -> None:
    @app.get("/api/plan/settings", summary="All settings of a plan")
    async def list_plan_settings() -> PlanFormOut:
        """Return every field of the form of a plan, in its group, and the parts of its bars."""
        return plan_form()

    @post(app, "/api/plan", PlanIn, in_lines(PlanLine), "Plan")
    async def plan(request: Annotated[PlanIn, body_of(PlanIn)]) -> Response:
        """Choose the configuration to train with. Answers lines of JSON: `progress` repeatedly, then the `plan`.

        Closing the connection ends the work.
        """
        return await streamed(pools.plans.stream(make_plan, request))

    @post(app, "/api/plan/chosen", ChosenIn, replied(ChosenReply), "Look at a configuration")
    async def chosen(request: Annotated[ChosenIn, body_of(ChosenIn)]) -> Response:
        """Return the estimate of one configuration, its trainer flags and its timeline."""
        return response(await pools.answers.ask(look_at, request))


PART = AppPart(
    add_routes=_add_routes,
    requests=(ChosenIn, PlanIn),
    replies=(ChosenReply, PlanLine),
    options={"PlanSettingsIn": _OPTIONS},
)
