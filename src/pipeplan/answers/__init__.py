"""The public API: one function per command, the types they return, and code shared by the command line and the web app."""

from pipeplan.foundation.lazy import lazy_names

_HOMES = {
    "answers": "contents_of save training_of",
    "arguments": "DEFAULT_SCHEDULE ScheduleLike configured",
    "checking": "CheckOptions Verdict check checked",
    "comparing.columns": "ColumnOptions LeastBound",
    "comparing.compare": "compare compared comparison_of with_shape_of",
    "comparing.comparison": "Comparison comparison_of_results",
    "config_files": "BundledCosts load_config shipped shipped_costs",
    "explaining.explanation": "Explanation explain explained",
    "explaining.remedies": "Remedy",
    "exporting": "Export ExportOptions converted export exported_to",
    "headlined": "BRIEF HeadlinedAnswer ShownOptions more_details more_rows",
    "listing": "Plugin StrategyRecord fixed_chunks machines register schedules",
    "outputs": (
        "all_formats built_in_formats content_as export_formats holds_schedule is_picture named_beside "
        "output_endings picture_name require_outputs"
    ),
    "published": "Allowed AllowOptions FasterWithMore NeedsLike",
    "simulating.result": "Result view_of_result",
    "simulating.simulate": "simulate simulated timed without_times",
    "sources": "as_taken_by file_of read_schedule read_timeline resolve same_ranks settings_for shape_of",
    "sweeping": "Study sweep",
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _HOMES)
