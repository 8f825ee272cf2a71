"""Times and bytes: tables per stage, and the settings they come from."""

from pipeplan.costs.config import Config, load_config, load_layers, merged, settings_given
from pipeplan.costs.costs_file import require_costs_file, write_costs_file
from pipeplan.costs.from_settings import Settings
from pipeplan.costs.layers import Layer, Layout, balanced, balanced_layers, bounds_of, stage_settings
from pipeplan.costs.limits import Limits, parse_limit, parse_size
from pipeplan.costs.machines import MACHINES, Machine
from pipeplan.costs.overhead import Overhead
from pipeplan.costs.setting import COUNT, GROUPS, POSITIVE, Group, Setting, SettingKind
from pipeplan.costs.settings import SETTING_NAMES, SETTINGS, Communication, SettingsGiven, Times, TimesPer
from pipeplan.costs.spread import Spread
from pipeplan.costs.table import Costs, Memory, Transfer, per_stage
from pipeplan.costs.to_settings import settings_of

__all__ = [
    "COUNT",
    "GROUPS",
    "MACHINES",
    "POSITIVE",
    "SETTINGS",
    "SETTING_NAMES",
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
    "require_costs_file",
    "settings_given",
    "settings_of",
    "stage_settings",
    "write_costs_file",
]
