"""File formats for schedules, timelines and costs: pipeplan's own, PyTorch's, those of trainers and of trace viewers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.formats.costs_record import CostsRecord, costs_json, is_costs_json, parse_costs_json
    from pipeplan.formats.format import (
        Content,
        Format as Format,
        TimelineContent as TimelineContent,
        TrainerSettings as TrainerSettings,
        Training,
        formats,
        in_order,
    )
    from pipeplan.formats.pipeplan_json import (
        ScheduleRecord,
        TimelineRecord,
        parse_json,
        parse_steps,
        schedule_json,
        timeline_json,
    )
    from pipeplan.formats.pytorch_csv import (
        TORCH_RELEASES,
        has_waits,
        parse_torch_csv,
        torch_csv as torch_csv,
        torch_csv_compute,
        torch_csv_warnings,
        torch_release,
    )
    from pipeplan.formats.reading import (
        SIZE_LIMIT,
        STANDARD_INPUT,
        FilePath,
        endings,
        is_readable,
        is_standard_input,
        parse,
        parse_standard_input,
        read_file,
        read_schedule_or_timeline,
        read_standard_input,
        standard_input_text,
        unpacked_name,
    )
    from pipeplan.formats.rows import Rows, is_printed_by_torch, rows_of
    from pipeplan.formats.timeline_table import TimelineTable, timeline_columns, timeline_csv
    from pipeplan.formats.trace import chrome_trace as chrome_trace
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
