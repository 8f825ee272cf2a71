"""File formats for schedules, timelines and costs: pipeplan's own, PyTorch's, those of trainers and of trace viewers."""

from pipeplan.foundation.lazy import lazy_names

_HOMES = {
    "costs_record": "CostsRecord costs_json is_costs_json parse_costs_json",
    "format": "Content Format TimelineContent TrainerSettings Training formats in_order",
    "pipeplan_json": "ScheduleRecord TimelineRecord parse_json parse_steps schedule_json timeline_json",
    "pytorch_csv": (
        "TORCH_RELEASES has_waits parse_torch_csv torch_csv torch_csv_compute torch_csv_warnings torch_release"
    ),
    "reading": (
        "SIZE_LIMIT FilePath endings is_readable is_standard_input parse parse_standard_input "
        "read_file read_schedule_or_timeline read_standard_input standard_input_text unpacked_name"
    ),
    "rows": "Rows is_printed_by_torch rows_of",
    "timeline_table": "TimelineTable timeline_columns timeline_csv",
    "trace": "chrome_trace",
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _HOMES)
