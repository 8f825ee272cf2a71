"""Schedules and timelines in the formats of pipeplan, PyTorch and trace viewers."""

from pipeplan.formats.pipeplan_json import parse_json, placement_record, schedule_json, timeline_json
from pipeplan.formats.reading import ENDINGS, read_plan, read_schedule
from pipeplan.formats.torch_csv import parse_torch_csv, torch_csv
from pipeplan.formats.trace import chrome_trace

__all__ = [
    "ENDINGS",
    "chrome_trace",
    "parse_json",
    "parse_torch_csv",
    "placement_record",
    "read_plan",
    "read_schedule",
    "schedule_json",
    "timeline_json",
    "torch_csv",
]
