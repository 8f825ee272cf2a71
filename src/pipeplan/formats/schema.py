"""Records of pipeplan's own file formats, by the names of their schemas in ``docs/schema``."""

from __future__ import annotations

import msgspec

from pipeplan.formats.costs_record import CostsRecord
from pipeplan.formats.pipeplan_json import ScheduleRecord
from pipeplan.formats.timeline_table import TimelineTable

RECORDS: dict[str, type[msgspec.Struct]] = {
    "pipeplan-schedule": ScheduleRecord,
    "pipeplan-costs": CostsRecord,
    "timeline-table": TimelineTable,
}
