"""Schedules, timelines and costs in the formats of pipeplan, PyTorch, trainers and trace viewers: one table of formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.formats.costs_record import costs_json, is_costs_json, parse_costs_json
    from pipeplan.formats.format import Content, Format, Outcome
    from pipeplan.formats.kineto import parse_kineto
    from pipeplan.formats.megatron import MegatronOrder, megatron_flags, megatron_release
    from pipeplan.formats.pipeplan_json import ResultRecord, parse_json, placement_record, schedule_json, timeline_json
    from pipeplan.formats.pytorch_csv import parse_torch_csv, torch_csv
    from pipeplan.formats.reading import (
        endings,
        parse,
        read_file,
        read_schedule,
        read_schedule_or_timeline,
        unpacked_name,
    )
    from pipeplan.formats.registry import formats, in_order
    from pipeplan.formats.rows import Rows, rows_of
    from pipeplan.formats.run_files import holds_run, read_run, read_timelines
    from pipeplan.formats.schema import RECORDS, schema_of
    from pipeplan.formats.standard_input import STANDARD_INPUT, is_standard_input, read_standard_input
    from pipeplan.formats.timeline_table import timeline_columns, timeline_csv
    from pipeplan.formats.torch_releases import TORCH_RELEASES, has_waits, torch_release
    from pipeplan.formats.torchtitan import (
        torchtitan_accumulation,
        torchtitan_flags,
        torchtitan_launch,
        torchtitan_python,
    )
    from pipeplan.formats.trace import chrome_trace
    from pipeplan.formats.traced_run import MeasuredRun, median_step
    from pipeplan.formats.training import TRAINING_NAMES, TRAINING_SETTINGS, TrainerSettings, Training, TrainingGiven

__all__ = [
    "RECORDS",
    "STANDARD_INPUT",
    "TORCH_RELEASES",
    "TRAINING_NAMES",
    "TRAINING_SETTINGS",
    "Content",
    "Format",
    "MeasuredRun",
    "MegatronOrder",
    "Outcome",
    "ResultRecord",
    "Rows",
    "TrainerSettings",
    "Training",
    "TrainingGiven",
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
    "megatron_flags",
    "megatron_release",
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
    "schema_of",
    "timeline_columns",
    "timeline_csv",
    "timeline_json",
    "torch_csv",
    "torch_release",
    "torchtitan_accumulation",
    "torchtitan_flags",
    "torchtitan_launch",
    "torchtitan_python",
    "unpacked_name",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "costs_record": {"costs_json", "is_costs_json", "parse_costs_json"},
            "format": {"Content", "Format", "Outcome"},
            "kineto": {"parse_kineto"},
            "megatron": {"MegatronOrder", "megatron_flags", "megatron_release"},
            "pipeplan_json": {"ResultRecord", "parse_json", "placement_record", "schedule_json", "timeline_json"},
            "reading": {"endings", "parse", "read_file", "read_schedule", "read_schedule_or_timeline", "unpacked_name"},
            "registry": {"formats", "in_order"},
            "rows": {"Rows", "rows_of"},
            "run_files": {"holds_run", "read_run", "read_timelines"},
            "schema": {"RECORDS", "schema_of"},
            "standard_input": {"STANDARD_INPUT", "is_standard_input", "read_standard_input"},
            "timeline_table": {"timeline_columns", "timeline_csv"},
            "pytorch_csv": {"parse_torch_csv", "torch_csv"},
            "torch_releases": {"TORCH_RELEASES", "has_waits", "torch_release"},
            "torchtitan": {
                "torchtitan_accumulation",
                "torchtitan_flags",
                "torchtitan_launch",
                "torchtitan_python",
            },
            "trace": {"chrome_trace"},
            "traced_run": {"MeasuredRun", "median_step"},
            "training": {"TRAINING_NAMES", "TRAINING_SETTINGS", "TrainerSettings", "Training", "TrainingGiven"},
        },
    )
