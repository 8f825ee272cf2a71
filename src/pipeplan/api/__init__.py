"""The public API: one function per command, the types they return, and code shared by the command line and the web app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.api.answers import contents_of as contents_of, save as save
    from pipeplan.api.arguments import (
        DEFAULT_SCHEDULE as DEFAULT_SCHEDULE,
        ScheduleLike as ScheduleLike,
        configured as configured,
    )
    from pipeplan.api.catalogue import (
        StrategyRecord as StrategyRecord,
        fixed_chunks as fixed_chunks,
        schedules as schedules,
    )
    from pipeplan.api.checks import CheckOptions as CheckOptions, Verdict as Verdict, check as check, checked as checked
    from pipeplan.api.comparing.columns import ColumnOptions as ColumnOptions
    from pipeplan.api.comparing.compare import (
        CompareOptions as CompareOptions,
        compare as compare,
        compared as compared,
        comparison_of as comparison_of,
        with_shape_of as with_shape_of,
    )
    from pipeplan.api.comparing.comparison import (
        Comparison as Comparison,
        LeastBound as LeastBound,
        comparison_of_results as comparison_of_results,
    )
    from pipeplan.api.config_files import (
        BundledCosts as BundledCosts,
        load_config as load_config,
        shipped as shipped,
        shipped_costs as shipped_costs,
    )
    from pipeplan.api.conversions import (
        ConvertOptions as ConvertOptions,
        convert as convert,
        converted as converted,
        converted_layout as converted_layout,
    )
    from pipeplan.api.differing.diff import DiffOptions as DiffOptions, diff as diff, differences as differences
    from pipeplan.api.differing.difference import Diff as Diff
    from pipeplan.api.editing.edit_texts import EditedShape as EditedShape, Flaw as Flaw, Place as Place
    from pipeplan.api.editing.edits import (
        Edit as Edit,
        change_in_words as change_in_words,
        edited as edited,
        text_of as text_of,
    )
    from pipeplan.api.editing.stopped_runs import StoppedRun as StoppedRun, Waiting as Waiting
    from pipeplan.api.explaining.explanation import (
        Explanation as Explanation,
        explain as explain,
        explained as explained,
    )
    from pipeplan.api.explaining.remedies import Remedy as Remedy
    from pipeplan.api.exports import (
        Export as Export,
        ExportOptions as ExportOptions,
        export as export,
        exported_to as exported_to,
    )
    from pipeplan.api.conversions import LayoutText as LayoutText, with_stage_layers as with_stage_layers
    from pipeplan.api.outputs import (
        all_formats as all_formats,
        built_in_formats as built_in_formats,
        content_as as content_as,
        export_formats as export_formats,
        holds_schedule as holds_schedule,
        is_picture as is_picture,
        named_beside as named_beside,
        output_endings as output_endings,
        picture_name as picture_name,
        require_outputs as require_outputs,
    )
    from pipeplan.api.planning.estimates import EstimatedRow as EstimatedRow, Estimates as Estimates
    from pipeplan.api.planning.one_configuration import ChosenConfiguration as ChosenConfiguration
    from pipeplan.api.planning.plans import Plan as Plan
    from pipeplan.api.planning.presets import Gpus as Gpus, Models as Models, gpus as gpus, models as models
    from pipeplan.api.registering import Plugin as Plugin, register as register
    from pipeplan.api.searching.fronts import ParetoFront as ParetoFront
    from pipeplan.api.searching.search_record import SearchRecord as SearchRecord
    from pipeplan.api.searching.search_words import decisions_of as decisions_of, gain_of as gain_of
    from pipeplan.api.simulating.result import Result as Result, ResultRecord as ResultRecord
    from pipeplan.api.simulating.simulate import (
        simulate as simulate,
        simulated as simulated,
        timed as timed,
        without_times as without_times,
    )
    from pipeplan.api.sources import (
        as_taken_by as as_taken_by,
        file_of as file_of,
        read as read,
        read_schedule as read_schedule,
        read_timeline as read_timeline,
        resolve as resolve,
        same_ranks as same_ranks,
        settings_for as settings_for,
        shape_of as shape_of,
    )
    from pipeplan.api.sweeping.study import Study as Study, sweep as sweep
    from pipeplan.api.training.calibrations import CalibrationProfile as CalibrationProfile
    from pipeplan.api.training.cost_profiles import (
        CostProfile as CostProfile,
        calibrated as calibrated,
        costs_of_run as costs_of_run,
        profile as profile,
        profiled as profiled,
    )
    from pipeplan.api.training.measuring import TrainingReport as TrainingReport
    from pipeplan.api.training.training_runs import (
        TrainingRun as TrainingRun,
        model_files as model_files,
        run as run,
        trained as trained,
    )
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
