"""The JSON Schema of every answer of a command, and of every file of pipeplan's own, by name and version."""

from __future__ import annotations

from inspect import getdoc
from typing import Any

import msgspec

from pipeplan.answers.checking.checks import Verdict
from pipeplan.answers.comparing.comparison import Comparison
from pipeplan.answers.explaining.explanation import Explanation
from pipeplan.answers.listing.catalogue import Catalogue, Machines
from pipeplan.extensions.planning.answers.calibrations import CalibrationProfile
from pipeplan.extensions.planning.answers.estimates import Estimates
from pipeplan.extensions.planning.answers.plans import Plan
from pipeplan.extensions.planning.answers.presets import Gpus, Models
from pipeplan.extensions.review.answers.result import Review
from pipeplan.extensions.review.answers.rules_table import ReviewRules
from pipeplan.extensions.search.answers.fronts import ParetoFront
from pipeplan.extensions.search.answers.searched_result import SearchedResult
from pipeplan.extensions.training.answers.cost_profiles import CostProfile
from pipeplan.extensions.training.answers.training_runs import TrainingRun
from pipeplan.extensions.training.diff.difference import Diff
from pipeplan.formats import CostsRecord, ScheduleRecord, TimelineRecord, TimelineTable
from pipeplan.foundation.records import Record, optional_fields, schema_of

ANSWERS: dict[str, type[Record]] = {
    "answer-check": Verdict,
    "answer-compare": Comparison,
    "answer-diff": Diff,
    "answer-estimate": Estimates,
    "answer-explain": Explanation,
    "answer-gpus": Gpus,
    "answer-machines": Machines,
    "answer-models": Models,
    "answer-pareto": ParetoFront,
    "answer-plan": Plan,
    "answer-profile": CostProfile,
    "answer-review": Review,
    "answer-review-rules": ReviewRules,
    "answer-run": TrainingRun,
    "answer-schedules": Catalogue,
    "calibration": CalibrationProfile,
    "pipeplan-result": SearchedResult,
}
"""Record of each answer, by the name of its schema."""

_FILE_OF_TIMELINE = msgspec.defstruct(
    "TimelineRecord",
    optional_fields(SearchedResult, without=TimelineRecord.__struct_fields__),
    bases=(TimelineRecord,),
    namespace={
        "__doc__": f"{getdoc(TimelineRecord)}\n\nThe optional figures are those of its result; see ResultRecord."
    },
    forbid_unknown_fields=True,
    tag="pipeplan-timeline",
    kw_only=True,
)
"""The record of a timeline's file, which has the figures of its result as well."""

EVERY: dict[str, type[msgspec.Struct]] = {
    "pipeplan-schedule": ScheduleRecord,
    "pipeplan-timeline": _FILE_OF_TIMELINE,
    "pipeplan-costs": CostsRecord,
    "timeline-table": TimelineTable,
    **ANSWERS,
}


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of one of ``EVERY``."""
    return schema_of(name, EVERY[name])
