"""Times and bytes: tables per stage, and the settings they come from."""

from pipeplan.costs.config import ALIASES, Config, load_config, load_layers, merged, settings_from, settings_given
from pipeplan.costs.costs_file import require_costs_file, write_costs_file
from pipeplan.costs.from_settings import Settings
from pipeplan.costs.keywords import (
    CalibrationOptionsKeywords,
    ProfileOptionsKeywords,
    RunOptionsKeywords,
    SettingsKeywords,
)
from pipeplan.costs.layers import Layer, Layout, balanced, balanced_layers, bounds_of, stage_settings
from pipeplan.costs.limits import Limits, parse_limit, parse_size
from pipeplan.costs.machines import MACHINES, Machine
from pipeplan.costs.options import (
    COUNT,
    GROUPS,
    POSITIVE,
    Group,
    Options,
    Range,
    Setting,
    SettingKind,
    missing_in,
    option,
    options_of,
    require_settings,
    table_of,
)
from pipeplan.costs.overhead import Overhead
from pipeplan.costs.settings import (
    SETTING_NAMES,
    SETTINGS,
    Communication,
    ConfiguredSettings,
    SettingsTable,
    Times,
    TimesPer,
)
from pipeplan.costs.spread import Spread
from pipeplan.costs.table import Costs, Memory, Transfer, per_stage
from pipeplan.costs.to_settings import settings_of
from pipeplan.costs.work_options import (
    MOST_SECONDS,
    SEED,
    WORKERS,
    CalibrationOptions,
    DataType,
    Device,
    ModelOptions,
    ProfileOptions,
    Receives,
    RunOptions,
)

__all__ = [
    "ALIASES",
    "COUNT",
    "GROUPS",
    "MACHINES",
    "MOST_SECONDS",
    "POSITIVE",
    "SEED",
    "SETTINGS",
    "SETTING_NAMES",
    "WORKERS",
    "CalibrationOptions",
    "CalibrationOptionsKeywords",
    "Communication",
    "Config",
    "ConfiguredSettings",
    "Costs",
    "DataType",
    "Device",
    "Group",
    "Layer",
    "Layout",
    "Limits",
    "Machine",
    "Memory",
    "ModelOptions",
    "Options",
    "Overhead",
    "ProfileOptions",
    "ProfileOptionsKeywords",
    "Range",
    "Receives",
    "RunOptions",
    "RunOptionsKeywords",
    "Setting",
    "SettingKind",
    "Settings",
    "SettingsKeywords",
    "SettingsTable",
    "Spread",
    "Times",
    "TimesPer",
    "Transfer",
    "balanced",
    "balanced_layers",
    "bounds_of",
    "load_config",
    "load_layers",
    "merged",
    "missing_in",
    "option",
    "options_of",
    "parse_limit",
    "parse_size",
    "per_stage",
    "require_costs_file",
    "require_settings",
    "settings_from",
    "settings_given",
    "settings_of",
    "stage_settings",
    "table_of",
    "write_costs_file",
]
