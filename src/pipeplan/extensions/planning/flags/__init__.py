"""Flags of a trainer for a plan, in a module with the trainer's name, and pipeplan's own file of a configuration."""

from pipeplan.extensions.planning.flags.configurations import (
    assumptions_of,
    cluster_of,
    is_configuration,
    model_of,
    read_configuration,
    read_keys,
)
from pipeplan.extensions.planning.flags.megatron import offloaded_share
from pipeplan.extensions.planning.flags.megatron_hybrid import layers_of_pattern, short_form_of
from pipeplan.extensions.planning.flags.scripts import function_name

__all__ = [
    "assumptions_of",
    "cluster_of",
    "function_name",
    "is_configuration",
    "layers_of_pattern",
    "model_of",
    "offloaded_share",
    "read_configuration",
    "read_keys",
    "short_form_of",
]
