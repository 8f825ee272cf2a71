"""The JSON Schema of every answer of a command, and of every file of pipeplan's own, by name and version."""

from __future__ import annotations

from functools import cache
from inspect import getdoc
from typing import Any

import msgspec

from pipeplan.answers.checking import Verdict
from pipeplan.answers.comparing.comparison import Comparison
from pipeplan.answers.explaining.explanation import Explanation
from pipeplan.answers.listing import Catalogue, Machines
from pipeplan.answers.simulating.result import Result
from pipeplan.formats import CostsRecord, ScheduleRecord, TimelineRecord, TimelineTable
from pipeplan.foundation.extensions import extensions, loaded
from pipeplan.foundation.records import Record, optional_fields, schema_of

ANSWERS: dict[str, type[Record]] = {
    "answer-check": Verdict,
    "answer-compare": Comparison,
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
    known = answers()
    return {
        "pipeplan-schedule": ScheduleRecord,
        "pipeplan-timeline": _file_of_timeline(known["pipeplan-result"]),
        "pipeplan-costs": CostsRecord,
        "timeline-table": TimelineTable,
        **known,
    }


def _file_of_timeline(result: type[Record]) -> type[msgspec.Struct]:
    """Return the record of a timeline's file, which has the figures of its result as well."""
    return msgspec.defstruct(
        "TimelineRecord",
        optional_fields(result, without=TimelineRecord.__struct_fields__),
        bases=(TimelineRecord,),
        namespace={
            "__doc__": f"{getdoc(TimelineRecord)}\n\nThe optional figures are those of its result; see ResultRecord."
        },
        forbid_unknown_fields=True,
        tag="pipeplan-timeline",
        kw_only=True,
    )


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of one of :func:`every`."""
    return schema_of(name, every()[name])
