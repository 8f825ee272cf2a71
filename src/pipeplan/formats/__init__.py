"""File formats for schedules, timelines and costs: pipeplan's own, PyTorch's, those of trainers and of trace viewers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.formats.costs_record import costs_json, is_costs_json, parse_costs_json
    from pipeplan.formats.format import (
        Content,
        Format,
        TimelineContent,
        TrainerSettings,
        Training,
        formats,
        in_order,
    )
    from pipeplan.formats.kineto import parse_kineto
    from pipeplan.formats.pipeplan_json import (
        BubbleRecord,
        Decided,
        JitterRecord,
        ObjectiveRecord,
        OverLimitRecord,
        PlacementRecord,
        Price,
        PublishedSchedule,
        ResultRecord,
        SearchFigures,
        SlowRankRecord,
        StepRecord,
        parse_json,
        placement_record,
        schedule_json,
        timeline_json,
    )
    from pipeplan.formats.pytorch_csv import (
        TORCH_RELEASES,
        has_waits,
        parse_torch_csv,
        torch_csv,
        torch_csv_compute,
        torch_csv_warnings,
        torch_release,
    )
    from pipeplan.formats.reading import (
        STANDARD_INPUT,
        endings,
        is_standard_input,
        parse,
        read_file,
        read_schedule,
        read_schedule_or_timeline,
        read_standard_input,
        unpacked_name,
    )
    from pipeplan.formats.rows import Rows, rows_of
    from pipeplan.formats.run_files import holds_run, read_run, read_timelines
    from pipeplan.formats.schema import RECORDS
    from pipeplan.formats.timeline_table import timeline_columns, timeline_csv
    from pipeplan.formats.trace import chrome_trace
    from pipeplan.formats.traced_run import MeasuredRun, median_step

__all__ = [
    "RECORDS",
    "STANDARD_INPUT",
    "TORCH_RELEASES",
    "BubbleRecord",
    "Content",
    "Decided",
    "Format",
    "JitterRecord",
    "MeasuredRun",
    "ObjectiveRecord",
    "OverLimitRecord",
    "PlacementRecord",
    "Price",
    "PublishedSchedule",
    "ResultRecord",
    "Rows",
    "SearchFigures",
    "SlowRankRecord",
    "StepRecord",
    "TimelineContent",
    "TrainerSettings",
    "Training",
    "chrome_trace",
    "costs_json",
    "endings",
    "formats",
    "has_waits",
    "holds_run",
    "in_order",
    "is_costs_json",
    "is_standard_input",
    "median_step",
    "parse",
    "parse_costs_json",
    "parse_json",
    "parse_kineto",
    "parse_torch_csv",
    "placement_record",
    "read_file",
    "read_run",
    "read_schedule",
    "read_schedule_or_timeline",
    "read_standard_input",
    "read_timelines",
    "rows_of",
    "schedule_json",
    "timeline_columns",
    "timeline_csv",
    "timeline_json",
    "torch_csv",
    "torch_csv_compute",
    "torch_csv_warnings",
    "torch_release",
    "unpacked_name",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "costs_record": {"costs_json", "is_costs_json", "parse_costs_json"},
            "format": {
                "Content",
                "Format",
                "TimelineContent",
                "TrainerSettings",
                "Training",
                "formats",
                "in_order",
            },
            "kineto": {"parse_kineto"},
            "pipeplan_json": {
                "BubbleRecord",
                "OverLimitRecord",
                "Decided",
                "JitterRecord",
                "ObjectiveRecord",
                "PlacementRecord",
                "Price",
                "PublishedSchedule",
                "ResultRecord",
                "SearchFigures",
                "SlowRankRecord",
                "StepRecord",
                "parse_json",
                "placement_record",
                "schedule_json",
                "timeline_json",
            },
            "pytorch_csv": {
                "TORCH_RELEASES",
                "has_waits",
                "parse_torch_csv",
                "torch_csv",
                "torch_csv_compute",
                "torch_csv_warnings",
                "torch_release",
            },
            "reading": {
                "STANDARD_INPUT",
                "endings",
                "is_standard_input",
                "parse",
                "read_file",
                "read_schedule",
                "read_schedule_or_timeline",
                "read_standard_input",
                "unpacked_name",
            },
            "rows": {"Rows", "rows_of"},
            "run_files": {"holds_run", "read_run", "read_timelines"},
            "schema": {"RECORDS"},
            "timeline_table": {"timeline_columns", "timeline_csv"},
            "trace": {"chrome_trace"},
            "traced_run": {"MeasuredRun", "median_step"},
        },
    )
