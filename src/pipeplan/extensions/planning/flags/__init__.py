"""Flags of a trainer for a plan, and pipeplan's own file of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.extensions.planning.flags.by_trainer import flags_of as flags_of
    from pipeplan.extensions.planning.flags.by_trainer import plan_flags as plan_flags
    from pipeplan.extensions.planning.flags.configurations import (
        assumptions_of as assumptions_of,
    )
    from pipeplan.extensions.planning.flags.configurations import (
        cluster_of as cluster_of,
    )
    from pipeplan.extensions.planning.flags.configurations import (
        is_configuration as is_configuration,
    )
    from pipeplan.extensions.planning.flags.configurations import (
        model_of as model_of,
    )
    from pipeplan.extensions.planning.flags.configurations import (
        read_configuration as read_configuration,
    )
    from pipeplan.extensions.planning.flags.megatron import offloaded_share as offloaded_share
    from pipeplan.extensions.planning.flags.megatron_hybrid import layers_of_pattern as layers_of_pattern
    from pipeplan.extensions.planning.flags.megatron_hybrid import short_form_of as short_form_of
    from pipeplan.extensions.planning.flags.scripts import function_name as function_name

    __all__: list[str]
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
