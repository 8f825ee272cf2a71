"""What stands at a model's two ends: the input embedding, the head and the loss."""

from __future__ import annotations

from dataclasses import replace

from pipeplan.workload.execution import Execution
from pipeplan.workload.layers.part import FULL, HALF, Part, elementwise, into_tensor, joined, linear, norm, shard_tokens
from pipeplan.workload.shape import ModelShape
from pipeplan.workload.work import Collective, Kept, LayerWork, MemoryPass, RankParameters

VOCABULARY_MULTIPLE = 128
"""Megatron pads the vocabulary to a multiple of this times t (--make-vocab-size-divisible-by)."""


def rank_vocabulary(model: ModelShape, execution: Execution) -> int:
    """Rows of the embedding on a rank of the tensor group, padded."""
    return -(-model.vocabulary // (VOCABULARY_MULTIPLE * execution.tensor)) * VOCABULARY_MULTIPLE


def embedding(model: ModelShape, execution: Execution) -> LayerWork:
    """A gather in F; in W a dense gradient that is added to, which is what PyTorch's embedding makes."""
    n, shard = execution.tokens, shard_tokens(execution)
    h, rows = model.hidden, rank_vocabulary(model, execution)
    positions = model.learned_positions or 0
    mask = shard * h if execution.dropout else 0.0
    summed: tuple[Collective, ...] = ()
    gathered: tuple[Collective, ...] = ()
    if execution.tensor > 1:
        sequence = execution.sequence_parallel
        summed = (
            Collective(
                name="embedding",
                operation="reduce_scatter" if sequence else "all_reduce",
                group="tensor",
                bytes=HALF * n * h,
            ),
        )
        if sequence:
            gathered = (Collective(name="embedding", operation="all_gather", group="tensor", bytes=HALF * n * h),)
    kept = [Kept(name="tokens", bytes=8 * n, until="W")]
    if mask:
        kept.append(Kept(name="embedding mask", bytes=mask))
    accumulated = FULL if execution.fp32_gradients else HALF
    return LayerWork(
        kind="embedding",
        name="embedding",
        forward=(
            MemoryPass(
                name="gather", bytes=(2 + 2 * bool(positions)) * HALF * n * h + mask, kernels=1 + bool(positions)
            ),
            *summed,
        ),
        backward_input=(*gathered,),
        backward_weight=(
            # Filled with 0, added to from every token, then added to the gradient that is accumulated.
            MemoryPass(name="scatter", bytes=3 * HALF * n * h + rows * h * (HALF + HALF + 2 * accumulated), kernels=3),
        ),
        kept=tuple(kept),
        transient_bytes=HALF * rows * h,
        parameters=RankParameters(dense=round((rows + positions) * h)),
    )


def head(model: ModelShape, execution: Execution) -> LayerWork:
    """The final norm and the product with the vocabulary, which stays in 16 bits; tied, its weights are the embedding's."""
    shared = rank_vocabulary(model, execution) * model.hidden
    part = joined(
        (
            norm(
                "final norm",
                model,
                execution,
                width=model.hidden,
                rows=shard_tokens(execution),
                keeps="final norm input",
            ),
            head_product(model, execution),
        )
    )
    return LayerWork(
        kind="head",
        name="head",
        forward=part.forward,
        backward_input=part.backward_input,
        backward_weight=part.backward_weight,
        kept=part.kept,
        transient_bytes=part.transient_bytes,
        parameters=RankParameters(dense=part.parameters.dense - (shared if model.tied_embeddings else 0)),
        embedding_parameters=shared if model.tied_embeddings else 0,
    )


def head_product(model: ModelShape, execution: Execution) -> Part:
    """Hidden states to logits of a rank's share of the vocabulary.

    Its backward holds what is gathered of the input again, and the weights' gradient before it is accumulated.
    """
    gathered = HALF * execution.tokens * model.hidden if execution.sequence_parallel else 0.0
    gradient = HALF * rank_vocabulary(model, execution) * model.hidden
    product = linear(
        "head",
        execution,
        rows=execution.tokens,
        inner=model.hidden,
        columns=rank_vocabulary(model, execution),
        keeps="head input",
        kept_rows=shard_tokens(execution),
        precision="bf16",
    )
    return joined(
        (
            into_tensor("head", execution, model.hidden),
            replace(product, transient_bytes=product.transient_bytes + gathered + gradient),
        )
    )


def loss_part(model: ModelShape, execution: Execution) -> Part:
    """Cross entropy of logits whose vocabulary is split over t.

    Fused: the logits are read twice and their gradient is written over them, in 16 bits; I scales it. Unfused (Megatron's
    vocabulary-parallel cross entropy): they are copied to 32 bits, the maximum is taken and subtracted, exponentials are
    made, summed and divided, each in a pass; the probabilities are kept, in 32 bits, and copied to 16 in I. Over t the
    maximum, the target's logit and the sum are reduced.
    """
    n = execution.tokens
    logits = n * rank_vocabulary(model, execution)
    reduced = tuple(
        Collective(name="loss", operation="all_reduce", group="tensor", bytes=FULL * n)
        for _ in range(3 if execution.tensor > 1 else 0)
    )
    if execution.fused_loss:
        part = elementwise("cross entropy", 3 * HALF * logits, 2 * HALF * logits)
        kept, most = Kept(name="logits' gradient", bytes=HALF * logits), HALF
    else:
        part = elementwise(
            "cross entropy",
            (HALF + 9 * FULL) * logits,
            (3 * FULL + HALF) * logits,
            kernels=7,
            backward_kernels=2,
        )
        kept, most = Kept(name="probabilities", bytes=FULL * logits), FULL + HALF
    transient = (execution.loss_bytes or most) * logits - kept.bytes
    return joined((part, Part(forward=reduced, kept=(kept,), transient_bytes=transient)))


def loss(model: ModelShape, execution: Execution) -> LayerWork:
    """Return the loss as a layer of its own."""
    part = loss_part(model, execution)
    return LayerWork(
        kind="loss",
        name="loss",
        forward=part.forward,
        backward_input=part.backward_input,
        backward_weight=(),
        kept=part.kept,
        transient_bytes=part.transient_bytes,
    )
