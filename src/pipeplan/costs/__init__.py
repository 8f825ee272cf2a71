"""Times and bytes: tables per stage, and the settings they come from."""

from pipeplan.costs.config import Config, load_config, load_layers, merged, settings_from, settings_given
from pipeplan.costs.costs_file import require_costs_file, write_costs_file
from pipeplan.costs.from_settings import Settings
from pipeplan.costs.layers import Layer, Layout, balanced, balanced_layers, bounds_of, stage_settings
from pipeplan.costs.limits import Limits, parse_limit, parse_size
from pipeplan.costs.machines import MACHINES, Machine
from pipeplan.costs.overhead import Overhead
from pipeplan.costs.setting import (
    COUNT,
    GROUPS,
    POSITIVE,
    Group,
    Range,
    Setting,
    SettingKind,
    plain_numbers,
    require_settings,
    table_of,
)
from pipeplan.costs.settings import SETTING_NAMES, SETTINGS, Communication, SettingsGiven, Times, TimesPer
from pipeplan.costs.spread import Spread
from pipeplan.costs.table import Costs, Memory, Transfer, per_stage
from pipeplan.costs.to_settings import settings_of
from pipeplan.costs.work_settings import MOST_SECONDS, RUN_SETTINGS, SEARCH_SETTINGS, WORKERS

__all__ = [
    "COUNT",
    "GROUPS",
    "MACHINES",
    "MOST_SECONDS",
    "POSITIVE",
    "RUN_SETTINGS",
    "SEARCH_SETTINGS",
    "SETTINGS",
    "SETTING_NAMES",
    "WORKERS",
    "Communication",
    "Config",
    "Costs",
    "Group",
    "Layer",
    "Layout",
    "Limits",
    "Machine",
    "Memory",
    "Overhead",
    "Range",
    "Setting",
    "SettingKind",
    "Settings",
    "SettingsGiven",
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
    "parse_limit",
    "parse_size",
    "per_stage",
    "plain_numbers",
    "require_costs_file",
    "require_settings",
    "settings_from",
    "settings_given",
    "settings_of",
    "stage_settings",
    "table_of",
    "write_costs_file",
]
