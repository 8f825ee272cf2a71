"""Schedules and timelines in the formats of pipeplan, PyTorch and trace viewers."""

from pipeplan.formats.costs_json import costs_json, parse_costs_json
from pipeplan.formats.kineto import parse_kineto
from pipeplan.formats.pipeplan_json import parse_json, placement_record, schedule_json, timeline_json
from pipeplan.formats.reading import ENDINGS, read_plan, read_schedule, read_timelines
from pipeplan.formats.timeline_table import timeline_csv
from pipeplan.formats.torch_csv import parse_torch_csv, torch_csv
from pipeplan.formats.trace import chrome_trace

__all__ = [
    "ENDINGS",
    "chrome_trace",
    "costs_json",
    "parse_costs_json",
    "parse_json",
    "parse_kineto",
    "parse_torch_csv",
    "placement_record",
    "read_plan",
    "read_schedule",
    "read_timelines",
    "schedule_json",
    "timeline_csv",
    "timeline_json",
    "torch_csv",
]
