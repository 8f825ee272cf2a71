"""Layers of a model as work: embedding, decoder layer, MTP layer, head and loss; and which degrees divide a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from pipeplan.extensions.planning.workload.layers.attention import attention, latent_attention
from pipeplan.extensions.planning.workload.layers.feed_forward import mixture, mlp
from pipeplan.extensions.planning.workload.layers.norms import norm, residual
from pipeplan.extensions.planning.workload.parameters import padded_vocabulary, streams_head
from pipeplan.extensions.planning.workload.part import (
    FULL,
    HALF,
    Part,
    elementwise,
    into_tensor,
    joined,
    kept_tokens,
    linear,
    out_of_tensor,
    shard_tokens,
    trained,
)
from pipeplan.extensions.planning.workload.pattern import ATTENTION, DENSE, HASHED, SHARED, WINDOWED, LayerForm
from pipeplan.extensions.planning.workload.recompute import full, selective_op
from pipeplan.extensions.planning.workload.shape import ModelShape
from pipeplan.extensions.planning.workload.work import (
    Collective,
    Execution,
    Group,
    Kept,
    LayerWork,
    MemoryPass,
    RankParameters,
    Recompute,
)
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import LayerKind


def rank_vocabulary(model: ModelShape, execution: Execution) -> int:
    """Return the padded rows of the embedding on a rank of the tensor group."""
    return padded_vocabulary(model.vocabulary, execution.tensor) // execution.tensor


def embedding(model: ModelShape, execution: Execution) -> LayerWork:
    """Return the embedding: a gather in F; in W an accumulation into a dense gradient, as in PyTorch's embedding."""
    n, shard = execution.tokens, shard_tokens(execution)
    h, rows = model.hidden, rank_vocabulary(model, execution)
    positions = model.learned_positions or 0
    mask = shard * h if execution.dropout else 0.0
    summed = out_of_tensor("embedding", execution, h, beside="")
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
            *summed.forward,
        ),
        backward_input=summed.backward_input,
        backward_weight=(
            # Three kernels: fill with 0, add every token's gradient, add the result to the accumulated gradient.
            MemoryPass(name="scatter", bytes=3 * HALF * n * h + rows * h * (HALF + HALF + 2 * accumulated), kernels=3),
        ),
        kept=tuple(kept),
        transient_bytes=HALF * rows * h,
        parameters=RankParameters(dense=round((rows + positions) * h)),
    )


def head(model: ModelShape, execution: Execution) -> LayerWork:
    """Return the final norm and the product with the vocabulary, in 16 bits; tied weights belong to the embedding."""
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
            Part(parameters=RankParameters(dense=streams_head(model))),
        )
    )
    own = shared if model.tied_embeddings else 0
    parameters = RankParameters(dense=part.parameters.dense - own)
    return replace(_of_part("head", "head", part), parameters=parameters, embedding_parameters=own)


def _of_part(kind: LayerKind, name: str, part: Part) -> LayerWork:
    """Return a part as a layer without parameters."""
    return LayerWork(
        kind=kind,
        name=name,
        forward=part.forward,
        backward_input=part.backward_input,
        backward_weight=part.backward_weight,
        kept=part.kept,
        transient_bytes=part.transient_bytes,
    )


def head_product(model: ModelShape, execution: Execution) -> Part:
    """Return the product of hidden states with a rank's share of the vocabulary.

    Its backward holds the gathered input, and the weight gradient before accumulation.
    """
    again = execution.sequence_parallel and execution.framework == "megatron"
    gathered = HALF * execution.tokens * model.hidden if again else 0.0
    gradient = HALF * rank_vocabulary(model, execution) * model.hidden
    product = linear(
        "head",
        execution,
        rows=execution.tokens,
        inner=model.hidden,
        columns=rank_vocabulary(model, execution),
        keeps="head input",
        kept_rows=kept_tokens(execution),
        precision="bf16",
    )
    return joined(
        (
            into_tensor("head", execution, model.hidden),
            replace(product, transient_bytes=product.transient_bytes + gathered + gradient),
        )
    )


def loss_part(model: ModelShape, execution: Execution) -> Part:
    """Return the cross entropy of logits whose vocabulary is split over t.

    Fused: the logits are read twice and overwritten with their 16-bit gradient; I scales it. Unfused (Megatron's
    vocabulary-parallel cross entropy): copy to 32 bits, take and subtract the maximum, exponentiate, sum and divide, each in
    a pass; the 32-bit probabilities are kept, and copied to 16 bits in I. Over t, the maximum, the target's logit and the
    sum are reduced.
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
    peak = (execution.loss_bytes or most) * logits
    kept = replace(kept, bytes=min(kept.bytes, peak))  # chunks of the logits are not kept
    transient = peak - kept.bytes
    return joined((part, Part(forward=reduced, kept=(kept,), transient_bytes=transient)))


def loss(model: ModelShape, execution: Execution) -> LayerWork:
    """Return the loss as its own layer."""
    return _of_part("loss", "loss", loss_part(model, execution))


def check_division(model: ModelShape, execution: Execution) -> None:
    """Raise ShapeError if a degree does not divide what it splits; names the nearest smaller degree that does."""
    for field, degree, what, size in _splits(model, execution):
        if degree < 1:
            raise ShapeError(f"the {field.replace('_', '-')} degree must be at least 1, not {degree}", field=field)
        if size % degree:
            nearest = next(divisor for divisor in range(degree, 0, -1) if size % divisor == 0)
            raise ShapeError(
                f"the {field.replace('_', '-')} degree {degree} does not divide {size:,} {what} of {model.name}; nearest "
                f"valid degree: {nearest}",
                field=field,
            )


def _splits(model: ModelShape, execution: Execution) -> Iterator[tuple[str, int, str, int]]:
    """Yield each setting, its degree, what the degree splits, and its size."""
    tensor, experts = execution.tensor, model.experts
    mixers = {form.mixer for form in model.forms}
    for mixer in (WINDOWED, ATTENTION):
        heads = model.heads_of(LayerForm(mixer))
        if mixer == ATTENTION or mixer in mixers:
            yield "tensor", tensor, "heads", heads.heads
            if model.latent is None and tensor <= heads.key_heads:
                yield "tensor", tensor, "key-value heads", heads.key_heads
    for what, size in mixer_splits(model):
        yield "tensor", tensor, what, size
    if model.dense_layers and model.ffn:
        yield "tensor", tensor, "columns of the FFN", model.ffn
    yield "context", execution.context, "tokens of a sequence", execution.sequence
    if experts is not None:
        yield "expert", execution.expert, "experts", experts.count
        yield "expert_tensor", execution.expert_tensor, "columns of an expert", experts.width
        if experts.shared_width:
            yield "tensor", tensor, "columns of the shared experts", experts.shared_width
    elif execution.expert > 1:
        yield "expert", execution.expert, "expert (it has no experts)", 1


def mixer_splits(model: ModelShape) -> Iterator[tuple[str, int]]:
    """Yield what the tensor group splits in the mixers in the place of attention, in words, and its size."""
    for own in model.mixers:
        mixer = model.mixer(own.letter)
        if mixer is not None:
            yield from mixer.splits(model.hidden)


_NORMED = frozenset({"attention input", "query compression's input", "ffn input", "shared ffn input"})
"""Outputs of the two norms that products keep; with 8-bit products each keeps its own copy."""


def decoder_layer(model: ModelShape, execution: Execution, form: LayerForm) -> LayerWork:
    """Return one layer of the decoder."""
    part = decoder_part(model, execution, form)
    kind: LayerKind = "moe" if form.has_experts else "dense"
    branch = "attention" if form.mixer else "ffn"
    entering = f"{branch} streams" if model.residual_streams > 1 else f"{branch} norm input"
    return _layer(kind, _layer_name(model, form), part, model, execution, entering=frozenset({entering}))


def _layer_name(model: ModelShape, form: LayerForm) -> str:
    mixer = model.mixer(form.mixer)
    ffn = {"": "", DENSE: "dense"}.get(form.ffn, "MoE")
    if mixer is not None:
        return f"{mixer.title} layer" + (f" with {ffn} FFN" if ffn else "")
    if not ffn:
        return "attention layer"
    if not form.mixer:
        return f"{ffn} FFN layer"
    window = " with sliding window" if form.mixer == WINDOWED else ""
    return f"{ffn} layer" + (" with the keys of an earlier indexer" if form.mixer == SHARED else window)


@lru_cache(maxsize=512)
def decoder_part(model: ModelShape, execution: Execution, form: LayerForm) -> Part:
    """Return norm, mixer, residual, norm, FFN, residual; sandwich norms (Gemma, Grok) follow mixer and FFN.

    Layers of hybrid models may have a mixer alone or an FFN alone, with one norm and one residual.
    """
    rows, h = shard_tokens(execution), model.hidden
    moe = form.has_experts
    sandwich = model.norms_a_layer > 2
    first = (
        norm("attention norm", model, execution, width=h, rows=rows, keeps="attention norm input", feeds=True)
        if form.mixer
        else Part()
    )
    second = (
        norm("ffn norm", model, execution, width=h, rows=rows, keeps="ffn norm input", feeds=not moe)
        if form.ffn and (model.norms_a_layer > 1 or not form.mixer)
        else Part()
    )
    mixed, ffn = _mixer_part(model, execution, form), _ffn_part(model, execution, form)
    if form.ffn == DENSE:
        ffn = joined((ffn, Part(modules={"mlp": Recompute(work=second.forward + ffn.forward, drops=ffn.kept_names)})))
    norms = Recompute(work=first.forward + second.forward, drops=_NORMED & (mixed.kept_names | ffn.kept_names))

    def behind(name: str) -> Part:
        if not sandwich:
            return Part()
        return norm(f"{name} output norm", model, execution, width=h, rows=rows, keeps=f"{name} output norm input")

    branches = []
    if form.mixer:
        add = residual("attention residual", model, execution)
        branches += [first, mixed, behind("attention"), add, _streams("attention", model, execution)]
    if form.ffn:
        branches += [second, ffn, behind("ffn"), residual("ffn residual", model, execution)]
        branches += [_streams("ffn", model, execution)]
    return joined((*branches, Part(modules={"layernorm": norms})))


def _mixer_part(model: ModelShape, execution: Execution, form: LayerForm) -> Part:
    if not form.mixer:
        return Part()
    mixer = model.mixer(form.mixer)
    if mixer is not None:
        return mixer.work(model.hidden, execution)
    windowed = form.mixer == WINDOWED
    if model.latent is not None:
        indexes = form.mixer != SHARED
        return latent_attention(model, model.latent, execution, windowed=windowed, indexes=indexes)
    return attention(model.heads_of(form), execution, windowed=windowed)


def _ffn_part(model: ModelShape, execution: Execution, form: LayerForm) -> Part:
    if not form.ffn:
        return Part()
    if not form.has_experts:
        return mlp(model, execution, width=float(model.ffn or 0))
    assert model.experts is not None
    experts = replace(model.experts, router_bias=False) if form.ffn == HASHED else model.experts
    return mixture(model, experts, execution)


def _streams(name: str, model: ModelShape, execution: Execution) -> Part:
    """Return the hyper-connections around a branch (mHC, arXiv 2512.24880).

    A product of all streams with a small matrix gives the weights that read the branch's input, mix the streams, and write
    its output. The streams are read twice and written once; they are kept in the place of the one stream of the norm's
    input.
    """
    streams = model.residual_streams
    if streams == 1:
        return Part()
    rows, h = shard_tokens(execution), model.hidden
    mixed = streams * (streams + 2)
    wide = rows * streams * h
    return joined(
        (
            linear(
                f"{name} stream mixing",
                execution,
                rows=rows,
                inner=streams * h,
                columns=mixed,
                keeps=f"{name} streams",
                precision="bf16",
            ),
            elementwise(f"{name} streams", 3 * HALF * wide, 5 * HALF * wide, kernels=3, backward_kernels=4),
            Part(parameters=RankParameters(dense=mixed + 3), transient_bytes=HALF * wide),
        )
    )


def mtp_layer(model: ModelShape, execution: Execution) -> LayerWork:
    """Return a multi-token prediction layer (DeepSeek-V3, arXiv 2412.19437 section 2.2).

    The token's embedding and the hidden state are normed, concatenated and projected from 2h to h; then come a layer, a
    norm, the model's head and a loss, as often as the model has passes. Embedding and head belong to other layers: their
    parameters are not counted here, but a stage without the embedding holds a copy of it.
    """
    rows, h = shard_tokens(execution), model.hidden
    numbers = rows * h
    part = joined(
        (
            elementwise("gather", 2 * HALF * execution.tokens * h, 0),
            Part(kept=(Kept(name="tokens", bytes=8 * execution.tokens, until="W"),)),
            norm("embedding norm", model, execution, width=h, rows=rows, keeps="embedding norm input"),
            norm("hidden norm", model, execution, width=h, rows=rows, keeps="hidden norm input"),
            elementwise("side by side", 4 * HALF * numbers, 4 * HALF * numbers),
            linear(
                "projection",
                execution,
                rows=execution.tokens,
                inner=2 * h,
                columns=h / execution.tensor,
                keeps="projection input",
                kept_rows=rows,
            ),
            decoder_part(model, execution, model.mtp_form),
            norm("further final norm", model, execution, width=h, rows=rows, keeps="further final norm input"),
        )
    )
    entering = frozenset({"tokens", "embedding norm input", "hidden norm input"})
    whole = _layer("mtp", "MTP layer", part, model, execution, entering=entering)
    tail = joined((head_product(model, execution), loss_part(model, execution)))
    passes = model.mtp_passes
    return replace(
        whole,
        forward=(whole.forward + tail.forward) * passes,
        backward_input=(tail.backward_input + whole.backward_input) * passes,
        backward_weight=(tail.backward_weight + whole.backward_weight) * passes,
        kept=(whole.kept + tail.kept) * passes,
        transient_bytes=max(whole.transient_bytes - sum(tensor.bytes for tensor in tail.kept), tail.transient_bytes),
        embedding_parameters=rank_vocabulary(model, execution) * h,
    )


def _layer(
    kind: LayerKind,
    name: str,
    part: Part,
    model: ModelShape,
    execution: Execution,
    *,
    entering: frozenset[str],
) -> LayerWork:
    scattered: dict[Group, int] = {"tensor": execution.tensor, "expert_tensor": execution.expert_tensor}
    parameters, untrained, gradients = trained(part, execution)
    return replace(
        _of_part(kind, name, part),
        backward_weight=gradients,
        # The residual stream's gradient is held during every branch.
        transient_bytes=part.transient_bytes + HALF * shard_tokens(execution) * model.hidden,
        parameters=parameters,
        frozen=untrained,
        recomputable={
            **part.modules,
            "full": full(part.forward, part.kept, entering, execution.framework),
            "selective-op": selective_op(
                part.forward, part.kept, part.products, entering, scattered, compiled=execution.fused_activation
            ),
        },
    )
