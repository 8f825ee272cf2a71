"""Feed-forward networks: dense FFNs and mixtures of experts.

A mixture consists of router, dispatch, grouped products, combine, and shared experts, which are one dense FFN.
"""

from __future__ import annotations

from dataclasses import replace

from pipeplan.extensions.planning.workload.components import Experts
from pipeplan.extensions.planning.workload.part import (
    ADAPTER,
    FULL,
    HALF,
    NUMBER_BYTES,
    Part,
    cast,
    elementwise,
    into_tensor,
    joined,
    keeps_copies,
    kept_number,
    kept_tokens,
    linear,
    out_of_tensor,
)
from pipeplan.extensions.planning.workload.shape import ModelShape
from pipeplan.extensions.planning.workload.work import (
    Collective,
    Execution,
    GroupedGemm,
    Kept,
    MemoryPass,
    Operation,
    RankParameters,
    Recompute,
)


def activation(execution: Execution, numbers: float, *, gated: bool, name: str = "activation") -> Part:
    """Return SiLU times the gate, or GELU, with ``numbers`` outputs.

    Fused, it keeps only its inputs; otherwise also the gate's factor. F reads the inputs and writes the output; I reads both
    and the gradient and writes the inputs' gradients.
    """
    inputs = 2 if gated else 1
    forward, backward = (inputs + 1) * HALF * numbers, (2 * inputs + 1) * HALF * numbers
    number = kept_number(execution, execution.precision) if execution.small_activations else HALF
    kept = [Kept(name=f"{name} input", bytes=number * inputs * numbers)]
    kernels = 1
    if gated and not execution.fused_activation:
        kept.append(Kept(name=f"{name} of gate", bytes=HALF * numbers))
        forward, backward, kernels = forward + 2 * HALF * numbers, backward + 3 * HALF * numbers, 2
    part = elementwise(name, forward, backward, kernels=kernels)
    return joined((part, Part(kept=tuple(kept), transient_bytes=(inputs + 1) * HALF * numbers)))


def mlp(model: ModelShape, execution: Execution, *, width: float, prefix: str = "", keeps_input: bool = True) -> Part:
    """Return an FFN: up (gate and up in one product), activation function and down, with the width split over t.

    ``keeps_input`` is False if another part keeps the same input (shared experts next to routed ones).
    """
    n, t = execution.tokens, execution.tensor
    own = width / t
    columns = (2 if model.gated else 1) * own
    return joined(
        (
            into_tensor(f"{prefix}ffn", execution, model.hidden),
            linear(
                f"{prefix}gate and up" if model.gated else f"{prefix}up",
                execution,
                rows=n,
                inner=model.hidden,
                columns=columns,
                keeps=f"{prefix}ffn input" if keeps_input else "",
                kept_rows=kept_tokens(execution),
                fused_cast=True,
                bias=model.bias_all,
                modules=(own, own) if model.gated else (own,),
            ),
            activation(execution, n * own, gated=model.gated, name=f"{prefix}activation"),
            linear(
                f"{prefix}down",
                execution,
                rows=n,
                inner=own,
                columns=model.hidden,
                keeps=f"{prefix}activation output",
                bias=model.bias_all,
            ),
            out_of_tensor(f"{prefix}ffn", execution, model.hidden),
        )
    )


def mixture(model: ModelShape, experts: Experts, execution: Execution) -> Part:
    """Return the FFN of an MoE layer.

    Before dispatch, tokens are split over t, as sequence parallelism leaves them. Expert parallelism uses ranks of the data,
    context and tensor groups, so it does not change how many tokens a rank sends: n k_E / t. An expert rank receives as
    many: e ranks send to it, each 1/e of their tokens. With expert tensor parallelism it receives etp times as many for
    1/etp of the FFN. ``imbalance`` multiplies what the fullest rank receives.
    """
    router, routed = _router(model, experts, execution), _routed(model, experts, execution)
    shared = _shared(model, experts, execution)
    whole = joined((router, shared, routed))
    modules = {"moe": Recompute(work=whole.forward, drops=whole.kept_names - {"ffn input"})}
    if experts.shared_width:
        modules["shared_experts"] = Recompute(work=shared.forward, drops=shared.kept_names)
    return joined((whole, Part(modules=modules)))


def _shared(model: ModelShape, experts: Experts, execution: Execution) -> Part:
    """Return the shared experts, which read the router's input, and the projection that weights them (Qwen2-MoE)."""
    if not experts.shared_width:
        return Part()
    ffn = mlp(model, execution, width=experts.shared_width, prefix="shared ", keeps_input=keeps_copies(execution))
    if not experts.shared_gate:
        return ffn
    rows = execution.tokens / execution.tensor
    return joined((ffn, linear("shared gate", execution, rows=rows, inner=model.hidden, columns=1, precision="bf16")))


def _router(model: ModelShape, experts: Experts, execution: Execution) -> Part:
    """Return the 32-bit logits of every expert; the input is the layer's, of which the norm keeps one copy."""
    rows = execution.tokens / execution.tensor
    logits = rows * experts.count
    product = linear(
        "router",
        execution,
        rows=rows,
        inner=model.hidden,
        columns=experts.count,
        keeps="ffn input",
        precision="bf16",
    )
    # Softmax or sigmoid, top-k, normalization of the weights, maps from tokens to experts, and token counts.
    choice = elementwise("expert choice", 4 * FULL * logits, 4 * FULL * logits, kernels=8)
    kept = Kept(name="router logits", bytes=FULL * logits)
    bias = RankParameters(dense=experts.count if experts.router_bias else 0)
    return joined((product, choice, Part(kept=(kept,), parameters=bias)))


def _routed(model: ModelShape, experts: Experts, execution: Execution) -> Part:
    """Return the routed experts between dispatch and combine; the gradients of their biases sum over the tokens.

    A token's expert weight multiplies the output of the activation function, so the experts' outputs are not kept (Megatron
    Core from 0.12 on). 16-bit gradients of all the rank's experts exist before they are accumulated.
    """
    sent = execution.tokens * experts.top_k / execution.tensor
    rows = sent * execution.expert_tensor * execution.imbalance
    width = experts.width / execution.expert_tensor
    local = experts.count / execution.expert
    number = kept_number(execution, execution.precision)
    columns = (2 if model.gated else 1) * width
    read = experts.latent_width or model.hidden
    up = _grouped("experts' gate and up", execution, groups=local, rows=rows, inner=read, columns=columns)
    act = activation(execution, rows * width, gated=model.gated, name="experts' activation")
    bias = round(local * (columns + read)) if experts.expert_bias else 0
    down = _grouped("experts' down", execution, groups=local, rows=rows, inner=width, columns=read)
    bias_gradients = (
        (MemoryPass(name="experts' bias gradients", bytes=HALF * rows * (columns + read), kernels=2),) if bias else ()
    )
    clamped, biased = _eager_biases(rows * columns, rows * read, local) if bias else (Part(), Part())
    kept = (
        Kept(name="experts' input", bytes=number * rows * read, until="W", gradient_bytes=number * rows * columns),
        Kept(
            name="experts' activation output",
            bytes=number * rows * width,
            until="W",
            gradient_bytes=number * rows * read,
        ),
        Kept(name="permutation", bytes=8 * sent),
        Kept(name="experts' weights", bytes=FULL * rows),
    )
    # FP8 products need a multiple of 16 rows per expert: Megatron pads the input and cuts the output (moe/experts.py). In
    # recipes with block scaling, the router pads (moe_router_padding_for_quantization).
    moved = 2 * 2 * HALF * rows * read if execution.precision == "fp8" else 0.0
    padded = elementwise("experts' padding", moved, moved, kernels=2)
    return joined(
        (
            _latent("down", model, experts, execution),
            _moved("dispatch", model, experts, execution, sent),
            Part(kept=kept[:1], parameters=RankParameters(expert=bias), backward_weight=bias_gradients),
            padded,
            up,
            clamped,
            act,
            Part(kept=kept[1:]),
            down,
            biased,
            Part(
                modules={
                    "moe_act": Recompute(
                        work=clamped.forward + act.forward, drops=frozenset({"experts' activation output"})
                    )
                }
            ),
            _moved("combine", model, experts, execution, sent),
            _latent("up", model, experts, execution),
        )
    )


_CASTING, _MIXING = 1.4, 2.0
"""Times of eager PyTorch kernels relative to their bytes: copies into another type, and broadcasts of two types, neither of
which reads vectors. Sources: intel/torch-xpu-ops pull request 3319 (1.2 to 1.45); pytorch pull requests 28344 and 167233."""


def _eager_biases(inputs: float, outputs: float, groups: float) -> tuple[Part, Part]:
    """Return the clamping of ``inputs`` numbers before the activation function, and the bias on ``outputs`` numbers.

    Only gpt-oss has biases of experts, and it clamps. Megatron Core does both in eager kernels (transformer/moe/experts.py
    and fusions/fused_bias_geglu.py). F clamps and concatenates the halves; I masks and concatenates their gradients. The
    bias times the token's 32-bit weight is added per expert in 32 bits, concatenated and converted to 16 bits; I converts
    the gradient back, sums it over the tokens for the bias and over the columns for the weight.
    """
    clamp = elementwise("experts' clamp", 4 * HALF * inputs, 5 * HALF * inputs, kernels=3)
    cast = _CASTING * (HALF + FULL)
    forward = _MIXING * (FULL + (HALF + 2 * FULL)) + 2 * FULL + cast
    backward = 2 * cast + 2 * HALF + (_MIXING * 2 + 1) * FULL + 3 * FULL
    kernels = round(2 * groups) + 2
    return clamp, elementwise(
        "experts' bias", forward * outputs, backward * outputs, kernels=kernels, backward_kernels=3 * kernels
    )


def _latent(name: str, model: ModelShape, experts: Experts, execution: Execution) -> Part:
    """Return a projection to or from the narrow width in which tokens go to experts (LatentMoE, Nemotron 3)."""
    width = experts.latent_width
    if width is None:
        return Part()
    inner, columns = (model.hidden, width) if name == "down" else (width, model.hidden)
    return linear(
        f"latent {name}",
        execution,
        rows=execution.tokens / execution.tensor,
        inner=inner,
        columns=columns,
        keeps="" if name == "down" else "combined experts' output",
    )


def _grouped(
    name: str,
    execution: Execution,
    *,
    groups: float,
    rows: float,
    inner: float,
    columns: float,
) -> Part:
    precision = execution.precision
    small = NUMBER_BYTES[precision] < HALF

    def product(rows: float, columns: float, inner: float, *, weight_gradient: bool = False) -> GroupedGemm:
        return GroupedGemm(
            name=name,
            groups=groups,
            rows=rows,
            columns=columns,
            inner=inner,
            precision=precision,
            accumulates=weight_gradient and execution.fp32_gradients,
            weight_gradient=weight_gradient,
        )

    part = Part(
        forward=(
            *((cast(f"{name} input", rows * inner, precision),) if small else ()),
            product(rows, columns, inner),
        ),
        backward_input=(
            *((cast(f"{name} gradient", rows * columns, precision),) if small else ()),
            product(rows, inner, columns),
        ),
        backward_weight=(product(rows, columns, inner, weight_gradient=True),),
        parameters=RankParameters(expert=round(groups * inner * columns)),
        transient_bytes=HALF * (rows * (inner + columns) + groups * inner * columns),
    )
    return _adapted(part, execution, groups=groups, rows=rows, inner=inner, columns=columns)


def _adapted(part: Part, execution: Execution, *, groups: float, rows: float, inner: float, columns: float) -> Part:
    """Return the products of experts with a low-rank adapter beside each; without a rank, the products alone."""
    rank = execution.adapter_rank
    if not rank:
        return part
    if not execution.adapts(part.forward[-1].name):
        return replace(part, backward_weight=())
    name = f"{part.forward[-1].name} {ADAPTER}"

    def product(columns: float, inner: float, *, weight_gradient: bool = False) -> GroupedGemm:
        return GroupedGemm(
            name=name, groups=groups, rows=rows, columns=columns, inner=inner, weight_gradient=weight_gradient
        )

    adapters = Part(
        forward=(product(rank, inner), product(columns, rank)),
        backward_input=(product(rank, columns), product(inner, rank)),
        backward_weight=(
            product(rank, inner, weight_gradient=True),
            product(columns, rank, weight_gradient=True),
        ),
        kept=(Kept(name=name, bytes=HALF * rows * rank, until="W", gradient_bytes=HALF * rows * rank),),
        adapters=RankParameters(expert=round(groups * rank * (inner + columns))),
    )
    return joined((replace(part, backward_weight=()), adapters))


def _moved(name: str, model: ModelShape, experts: Experts, execution: Execution, sent: float) -> Part:
    """Return the transport of tokens to experts or back: permutation, exchange over e, gathering over etp.

    I runs the reverse. A permutation reads and writes each copy of a token once, at both ends of an exchange.
    """
    e, etp = execution.expert, execution.expert_tensor
    buffer = HALF * sent * (experts.latent_width or model.hidden)
    passes = MemoryPass(name=f"{name} permutation", bytes=(2 if e == 1 else 4) * buffer, kernels=1 if e == 1 else 2)
    toward: Operation = "all_gather" if name == "dispatch" else "reduce_scatter"
    back: Operation = "reduce_scatter" if name == "dispatch" else "all_gather"

    def exchange(sent_bytes: float) -> tuple[Collective, ...]:
        if e == 1:
            return ()
        return (
            Collective(
                name=name,
                operation="all_to_all",
                group="expert",
                bytes=buffer * execution.imbalance * sent_bytes / HALF,
                nodes_a_token=experts.nodes_a_token,
                copies=experts.top_k,
                experts=experts.count / e,
                beside="batch",
            ),
        )

    def gathered(operation: Operation) -> tuple[Collective, ...]:
        if etp == 1:
            return ()
        return (
            Collective(
                name=name,
                operation=operation,
                group="expert_tensor",
                bytes=buffer * etp * execution.imbalance,
                beside="batch",
            ),
        )

    if name == "dispatch":
        forward = (*exchange(execution.dispatch_bytes), *gathered(toward))
        backward = (*gathered(back), *exchange(HALF))
    else:
        forward = (*gathered(toward), *exchange(HALF))
        backward = (*exchange(execution.dispatch_bytes), *gathered(back))
    return Part(forward=(passes, *forward), backward_input=(*backward, passes))
