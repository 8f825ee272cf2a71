"""The JSON Schema of every answer of a command, and of every file of pipeplan's own, by name and version."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from pipeplan.answers.checking import Verdict
from pipeplan.answers.comparing.comparison import Comparison
from pipeplan.answers.explaining.explanation import Explanation
from pipeplan.answers.listing import Catalogue, CostsList, Machines
from pipeplan.answers.simulating.result import Result
from pipeplan.formats import CostsRecord, ScheduleRecord, TimelineRecord, TimelineTable
from pipeplan.foundation.extensions import extensions, loaded
from pipeplan.foundation.records import Record, schema_of

ANSWERS: dict[str, type[Record]] = {
    "answer-check": Verdict,
    "answer-compare": Comparison,
    "answer-costs": CostsList,
    "answer-explain": Explanation,
    "answer-machines": Machines,
    "answer-schedules": Catalogue,
    "pipeplan-result": Result,
}
"""Record of each answer of the core, by the name of its schema."""


def answers() -> dict[str, type[Record]]:
    """Return the record of each answer by the name of its schema, also those that extensions register."""
    registered = {name: loaded(address) for extension in extensions() for name, address in extension.answers.items()}
    return dict(sorted((ANSWERS | registered).items()))


@cache
def every() -> dict[str, type[msgspec.Struct]]:
    """Return every record that has a schema, by name: those of files, and answers."""
    return {
        "pipeplan-schedule": ScheduleRecord,
        "pipeplan-timeline": TimelineRecord,
        "pipeplan-costs": CostsRecord,
        "timeline-table": TimelineTable,
        **answers(),
    }


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of one of :func:`every`."""
    result = schema_of(name, every()[name])
    return _with_figures(result) if name == "pipeplan-timeline" else result


def _with_figures(timeline: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a timeline's file, which may have the figures of its result as well."""
    result = schema_of("pipeplan-result", every()["pipeplan-result"])
    own, figures = (each["$defs"][each["$ref"].rpartition("/")[2]] for each in (timeline, result))
    own["properties"] = own["properties"] | {
        key: value for key, value in figures["properties"].items() if key not in own["properties"]
    }
    own["description"] += "\n\nThe optional figures are those of its result; see ResultRecord."
    own["additionalProperties"] = False
    records = {key: value for key, value in result["$defs"].items() if value is not figures}
    return timeline | {"$defs": timeline["$defs"] | records}
