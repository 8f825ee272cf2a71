"""Flags of a trainer for a plan, and pipeplan's own file of a configuration."""

from pipeplan.foundation.lazy import lazy_names

_HOMES = {
    "by_trainer": "flags_of plan_flags",
    "configurations": "assumptions_of cluster_of configuration_document is_configuration model_of read_configuration",
    "megatron": "offloaded_share",
    "megatron_hybrid": "layers_of_pattern short_form_of",
    "scripts": "function_name",
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _HOMES)
