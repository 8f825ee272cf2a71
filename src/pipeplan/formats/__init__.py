"""File formats for schedules, timelines and costs: pipeplan's own, PyTorch's, those of trainers and of trace viewers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.formats.costs_record import (
        costs_json as costs_json,
        is_costs_json as is_costs_json,
        parse_costs_json as parse_costs_json,
    )
    from pipeplan.formats.format import (
        Content as Content,
        Format as Format,
        TimelineContent as TimelineContent,
        TrainerSettings as TrainerSettings,
        Training as Training,
        formats as formats,
        in_order as in_order,
    )
    from pipeplan.formats.kineto import parse_kineto as parse_kineto
    from pipeplan.formats.pipeplan_json import (
        TimelineRecord as TimelineRecord,
        parse_json as parse_json,
        schedule_json as schedule_json,
        timeline_json as timeline_json,
    )
    from pipeplan.formats.pytorch_csv import (
        TORCH_RELEASES as TORCH_RELEASES,
        has_waits as has_waits,
        parse_torch_csv as parse_torch_csv,
        torch_csv as torch_csv,
        torch_csv_compute as torch_csv_compute,
        torch_csv_warnings as torch_csv_warnings,
        torch_release as torch_release,
    )
    from pipeplan.formats.reading import (
        STANDARD_INPUT as STANDARD_INPUT,
        endings as endings,
        is_readable as is_readable,
        is_standard_input as is_standard_input,
        parse as parse,
        read_file as read_file,
        read_schedule_or_timeline as read_schedule_or_timeline,
        read_standard_input as read_standard_input,
        unpacked_name as unpacked_name,
    )
    from pipeplan.formats.rows import Rows as Rows, rows_of as rows_of
    from pipeplan.formats.run_files import (
        holds_run as holds_run,
        read_run as read_run,
    )
    from pipeplan.formats.schema import RECORDS as RECORDS
    from pipeplan.formats.timeline_table import timeline_columns as timeline_columns, timeline_csv as timeline_csv
    from pipeplan.formats.trace import chrome_trace as chrome_trace
    from pipeplan.formats.traced_run import MeasuredRun as MeasuredRun, median_step as median_step
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
