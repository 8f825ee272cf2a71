"""The JSON Schema of everything that pipeplan writes as JSON of its own, made from the records that write it.

They are published in ``docs/schema``, a file a format.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pipeplan.formats.costs_record import CostsRecord
from pipeplan.formats.pipeplan_json import VERSION, ResultRecord, ScheduleRecord, TimelineRecord
from pipeplan.formats.timeline_table import TimelineTable

RECORDS: dict[str, type[msgspec.Struct]] = {
    "pipeplan-schedule": ScheduleRecord,
    "pipeplan-timeline": TimelineRecord,
    "pipeplan-result": ResultRecord,
    "pipeplan-costs": CostsRecord,
    "timeline-table": TimelineTable,
}
"""The formats and their records."""


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of one of ``RECORDS``."""
    return schema_of(name, RECORDS[name])


def schema_of(name: str, record: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a record under its name and version."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:pipeplan:{name}:{VERSION}",
        "title": f"{name}, version {VERSION}",
        **msgspec.json.schema(record),
    }
