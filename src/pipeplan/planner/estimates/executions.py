"""From a configuration and the software that runs it to how one rank runs its layers."""

from __future__ import annotations

from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.memory_rules import memory_rules
from pipeplan.planner.estimates.software import software
from pipeplan.workload import Execution


def execution_of(configuration: Configuration) -> Execution:
    """How a rank runs its layers, before recomputation and offload, which stages may choose for themselves.

    Raises
    ------
    UnknownNameError
        For software that nobody knows.
    """
    trainer = software(configuration.software)
    return Execution(
        microbatch_size=configuration.microbatch_size,
        sequence=configuration.sequence,
        tensor=configuration.tensor,
        context=configuration.context,
        expert=configuration.expert,
        expert_tensor=configuration.expert_tensor,
        sequence_parallel=configuration.sequence_parallel and configuration.tensor > 1,
        precision=configuration.precision,
        attention=trainer.attention,
        dropout=trainer.dropout,
        fused_loss=trainer.fused_loss,
        loss_bytes=memory_rules(configuration.software).loss_bytes,
        small_inputs=memory_rules(configuration.software).small_inputs,
        small_activations=memory_rules(configuration.software).small_activations,
        fused_activation=trainer.fused_activation,
        fp32_gradients=trainer.fp32_gradients,
        context_method=trainer.context_method,
    )
