"""Settings of shape and costs, and the times and bytes per stage that follow from them."""

from pipeplan.costs.config import (
    ALIASES,
    Config,
    load_config,
    load_factors,
    load_layers,
    load_lengths,
    parse_config,
    settings_given,
)
from pipeplan.costs.costs_file import (
    IN_COSTS,
    Spread,
    require_costs_file,
    settings_beside,
    settings_of,
    write_costs_file,
)
from pipeplan.costs.from_settings import UNIT_TIMES, Settings
from pipeplan.costs.keywords import (
    CalibrationOptionsKeywords,
    DeviceOptionsKeywords,
    GivenFactors,
    GivenLengths,
    GivenSizes,
    GivenTimes,
    MeasuringOptionsKeywords,
    SettingsKeywords,
)
from pipeplan.costs.kinds import KINDS, OptionKind, check_value, text_fault
from pipeplan.costs.layers import (
    Layer,
    Layout,
    Role,
    balanced,
    balanced_layers,
    blocks_of,
    bounds_of,
    each_layer,
    segments_of,
    stage_settings,
)
from pipeplan.costs.memory import Limits, Memory
from pipeplan.costs.microbatch_factors import FactorTable, FactorTables, Lengths, MicrobatchFactors
from pipeplan.costs.options import (
    Options,
    missing_in,
    names_of,
    option,
    options_of,
    table_of,
)
from pipeplan.costs.overhead import MACHINES, Machine, Overhead
from pipeplan.costs.segments import (
    COMPUTE,
    LANES,
    OPS,
    OpSegments,
    Segment,
    Segments,
    in_sequence,
)
from pipeplan.costs.setting import FOLDED_GROUPS, GROUPS, SETTING_GROUPS, Group, Setting, SettingKind, Shell
from pipeplan.costs.settings import (
    SETTING_NAMES,
    SETTINGS,
    Communication,
    ConfiguredSettings,
    PairTable,
    SettingsLike,
    SettingsTable,
    ShellSettings,
    Times,
    TimesPer,
)
from pipeplan.costs.slice_attention import SliceAttention
from pipeplan.costs.table import Costs, Transfer, pair_table, per_stage
from pipeplan.costs.values import COUNT, POSITIVE, Range, parse_duration, parse_limit
from pipeplan.costs.work_options import (
    MOST_SECONDS,
    SEED,
    STEPS,
    WORKERS,
    CalibrationOptions,
    Device,
    DeviceOptions,
    MeasuringOptions,
)
from pipeplan.costs.written_numbers import SIZE_UNIT

__all__ = ["Layer", "Limits", "OpSegments", "balanced_layers", "stage_settings"]
