"""The public API: one function per command, the types they return, and code shared by the command line and the web app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.answers.answers import contents_of, save
    from pipeplan.answers.arguments import DEFAULT_SCHEDULE, ScheduleLike, configured
    from pipeplan.answers.checking import CheckOptions, Verdict, check, checked
    from pipeplan.answers.comparing.columns import ColumnOptions, LeastBound
    from pipeplan.answers.comparing.compare import compare, compared, comparison_of, with_shape_of
    from pipeplan.answers.comparing.comparison import Comparison, comparison_of_results
    from pipeplan.answers.config_files import BundledCosts, load_config, shipped, shipped_costs
    from pipeplan.answers.explaining.explanation import Explanation, explain, explained
    from pipeplan.answers.explaining.remedies import Remedy
    from pipeplan.answers.exporting import Export, ExportOptions, converted, export, exported_to
    from pipeplan.answers.listing import Plugin, StrategyRecord, fixed_chunks, machines, register, schedules
    from pipeplan.answers.outputs import (
        all_formats,
        built_in_formats,
        content_as,
        export_formats,
        holds_schedule,
        is_picture,
        named_beside,
        output_endings,
        picture_name,
        require_outputs,
    )
    from pipeplan.answers.published import Allowed, AllowOptions, FasterWithMore, NeedsLike
    from pipeplan.answers.simulating.result import Result, view_of_result
    from pipeplan.answers.simulating.simulate import simulate, simulated, timed, without_times
    from pipeplan.answers.sources import (
        as_taken_by,
        file_of,
        read_schedule,
        read_timeline,
        resolve,
        same_ranks,
        settings_for,
        shape_of,
    )
    from pipeplan.answers.sweeping import Study, sweep
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
