"""Facts of a network beside its sizes: what each is called, and Megatron-LM's flags for it, compared with 0.19.2.

A trainer that takes a model from flags writes those of each fact, and names the facts without one. A trainer that takes
it from a recipe names them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pipeplan.extensions.planning.workload import SHARED, ModelShape
from pipeplan.model import counted

OLDEST, NEW = "0.14", "0.19"
"""Oldest supported release of Megatron-core, and the first one with flags for YaRN without latents, and for indexers."""

_ACTIVATIONS = {
    "silu": "SiLU",
    "gelu": "GELU",
    "gelu-tanh": "GELU with tanh",
    "quick-gelu": "QuickGELU",
    "relu": "ReLU",
    "relu2": "squared ReLU",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of a network: ``words`` of a warning, empty if a model does not differ from a plain decoder in it.

    ``flags`` are Megatron-LM's for a model that has it (None: there are none) ``since`` a release of Megatron-core;
    ``exact`` tells whether they express it, ``always`` whether a plain decoder has them, too.
    """

    words: Callable[[ModelShape], str]
    flags: Callable[[ModelShape], Iterable[str]] | None = None
    exact: Callable[[ModelShape], bool] = lambda _: True
    since: str = OLDEST
    always: bool = False


def _has(present: Callable[[ModelShape], object], words: str, *flags: str, since: str = OLDEST) -> Fact:
    """Return a fact that a model has or has not, with the same flags for every model."""
    return Fact(lambda model: words if present(model) else "", (lambda _: flags) if flags else None, since=since)


def _number(name: str, words: str, usual: float | None = None, *, flag: str = "") -> Fact:
    """Return the fact that a number among a model's details differs from the usual; it stands in place of ``{}``."""

    def text(model: ModelShape, template: str) -> str:
        value = getattr(model.details, name)
        return "" if value == usual else template.format(f"{value:g}")

    return Fact(lambda model: text(model, words), (lambda model: [text(model, flag)]) if flag else None)


def _activation_words(model: ModelShape) -> str:
    name = _ACTIVATIONS.get(model.activation, model.activation)
    if model.activation == "silu" and model.gated:
        return ""
    return f"gates of {name}" if model.gated else f"the activation {name}" if model.details.activation else ""


def _activation_flags(model: ModelShape) -> Iterator[str]:
    """Yield the flags of the activation, or of the nearest one with as many matrices."""
    if model.gated:
        yield "--quick-geglu" if "gelu" in model.activation else "--swiglu"
    elif model.activation == "relu2":
        yield "--squared-relu"
    if model.bias_all and not model.gated and model.activation in ("gelu", "relu2"):
        # Megatron's fused kernel for biases and GELU computes the approximation with tanh.
        yield "--no-bias-gelu-fusion"


def _has_activation(model: ModelShape) -> bool:
    if model.gated:
        return model.activation in ("silu", "quick-gelu")
    return model.activation in ("gelu", "relu2") or (model.activation == "gelu-tanh" and model.bias_all)


def _rotates(model: ModelShape) -> bool:
    return model.positions == "rope"


def _position_words(model: ModelShape) -> str:
    return {"alibi": "ALiBi, linear biases of attention by distance", "none": "no positions"}.get(model.positions, "")


def _position_flags(model: ModelShape) -> Iterator[str]:
    kind = {"learned": "learned_absolute", "alibi": "none"}.get(model.positions, model.positions)
    yield f"--position-embedding-type {kind}"
    if _rotates(model) and has_whole_base(model):
        yield f"--rotary-base {model.rope_theta:.0f}"


def has_whole_base(model: ModelShape) -> bool:
    """Return True if the base of rotary positions is a known integer, the only value that Megatron-LM's flag accepts."""
    return model.rope_theta is not None and float(model.rope_theta).is_integer()


def _is_llama3(model: ModelShape) -> bool:
    scaling = model.details.rotary_scaling
    return scaling is not None and (scaling.original, scaling.low_frequency, scaling.high_frequency) == (8192, 1, 4)


def _llama3_flags(model: ModelShape) -> Iterator[str]:
    if (scaling := model.details.rotary_scaling) is not None and _is_llama3(model):
        yield "--use-rope-scaling"
        yield f"--rope-scaling-factor {scaling.factor:g}"


def _is_whole_factor(model: ModelShape) -> bool:
    scaling = model.details.rotary_scaling
    return scaling is not None and float(scaling.factor).is_integer()


def _linear_flags(model: ModelShape) -> Iterator[str]:
    if (scaling := model.details.rotary_scaling) is not None and _is_whole_factor(model):
        yield f"--rotary-seq-len-interpolation-factor {scaling.factor:.0f}"


def _yarn_flags(model: ModelShape) -> Iterator[str]:
    """Yield YaRN's flags; those of latent attention have no bounds of frequencies and no original length."""
    scaling = model.details.rotary_scaling
    if scaling is None:
        return
    yield f"--rotary-scaling-factor {scaling.factor:g}"
    if scaling.mscale is not None:
        yield f"--mscale {scaling.mscale:g}"
    if scaling.mscale_all is not None:
        yield f"--mscale-all-dim {scaling.mscale_all:g}"
    if model.latent is None:
        yield "--position-embedding-type yarn"
        yield f"--yarn-original-max-position-embeddings {scaling.original or 4096}"
        yield f"--yarn-beta-fast {scaling.beta_fast:g}"
        yield f"--yarn-beta-slow {scaling.beta_slow:g}"
        if not scaling.rounded:
            yield "--no-yarn-correction-range-round-to-int"


def _is_deepseeks_yarn(model: ModelShape) -> bool:
    scaling = model.details.rotary_scaling
    return scaling is not None and (
        (scaling.original or 4096, scaling.beta_fast, scaling.beta_slow, scaling.rounded) == (4096, 32, 1, True)
    )


def _scaling(*kinds: str, latent: bool = False) -> Callable[[ModelShape], str]:
    """Return the words for a kind of scaling of rotary positions; without kinds, for one that no other row has."""

    def words(model: ModelShape) -> str:
        scaling = model.details.rotary_scaling
        if scaling is None or not _rotates(model):
            return ""
        if kinds:
            present = scaling.kind in kinds and (model.latent is not None) == latent
        else:
            present = scaling.kind not in (("yarn",) if model.latent is not None else ("yarn", "llama3", "linear"))
        return f"the scaling of rotary positions ({scaling.kind}, factor {scaling.factor:g})" if present else ""

    return words


def _skip_flags(model: ModelShape) -> Iterator[str]:
    every = model.details.no_rotary_every
    if model.layers % every == 0:
        yield f"--no-rope-freq {every}"
    else:
        yield f"--no-rope-freq '{list_flag([int((layer + 1) % every == 0) for layer in range(model.layers)])}'"


def list_flag(layers: list[int]) -> str:
    """Return a list as the sum of its runs, ``([0]*3+[1]*58)``."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and runs[-1][0] == layer:
            runs[-1][1] += 1
        else:
            runs.append([layer, 1])
    return f"({'+'.join(f'[{value}]*{count}' for value, count in runs)})"


def _selects_by_bias_after_softmax(model: ModelShape) -> bool:
    experts = model.experts
    return experts is not None and experts.router_score == "softmax" and experts.router_bias and not model.bias_all


def _weights_sum_freely(model: ModelShape) -> bool:
    experts = model.experts
    if experts is None or experts.router_score != "sigmoid":
        return False
    return not experts.normalized_weights and experts.top_k > 1


def _group_words(model: ModelShape) -> str:
    """Return how a router chooses groups of experts, if Megatron-core chooses them otherwise.

    It adds the scores of the best experts of each group: as many as a token has experts per chosen group.
    """
    experts = model.experts
    if experts is None or experts.groups is None or experts.nodes_a_token is None:
        return ""
    added, by_best = experts.top_k // experts.nodes_a_token, model.details.groups_by_best
    if added == (1 if by_best else 2):
        return ""
    return f"groups of experts chosen by their {'best expert' if by_best else 'two best experts'}"


def _mamba(size: str, usual: object, words: str) -> Fact:
    def text(model: ModelShape) -> str:
        values = [dict(mixer.sizes).get(size, usual) for mixer in model.mixers if mixer.kind == "mamba-2"]
        return next((words.format(value) for value in values if value != usual), "")

    return Fact(text)


_ROTARY_SHARE = _number("rotary_share", "rotary positions on {} of each head", 1.0, flag="--rotary-percent {}")

FACTS: tuple[Fact, ...] = (
    Fact(_activation_words, _activation_flags, _has_activation, always=True),
    _number("gate_limit", "inputs of gates of at most {}", flag="--activation-func-clamp-value {}"),
    _number("gate_offset", "{} added to the gated half", 0.0, flag="--glu-linear-offset {}"),
    Fact(_position_words, _position_flags, lambda model: model.positions != "alibi", always=True),
    Fact(
        lambda model: _ROTARY_SHARE.words(model) if _rotates(model) else "",
        _ROTARY_SHARE.flags,
        lambda model: model.latent is None,
    ),
    _has(
        lambda model: model.details.rotary_interleaved and model.latent is None,
        "interleaved rotary positions",
        "--rotary-interleaved",
    ),
    Fact(_scaling("llama3"), _llama3_flags, _is_llama3),
    Fact(_scaling("linear"), _linear_flags, _is_whole_factor),
    Fact(_scaling("yarn", latent=True), _yarn_flags, _is_deepseeks_yarn),
    Fact(_scaling("yarn"), _yarn_flags, since=NEW),
    Fact(_scaling()),
    Fact(
        lambda model: "layers without rotary positions" if model.details.no_rotary_every and _rotates(model) else "",
        _skip_flags,
    ),
    _has(lambda model: model.details.local_rotary and _rotates(model), "other rotary positions in windowed layers"),
    _has(
        lambda model: model.details.centered_norms,
        "weights of norms that are differences from 1",
        "--apply-layernorm-1p",
    ),
    _has(lambda model: model.norm == "layer-no-bias", "LayerNorm without bias"),
    Fact(lambda model: "" if model.norms_a_layer == 2 else f"{counted(model.norms_a_layer, 'norm')} per layer"),
    _has(lambda model: model.details.norms_after, "norms behind attention and FFN"),
    _has(lambda model: model.details.parallel_residual, "attention and FFN in parallel"),
    _has(lambda model: model.qk_norm_whole, "norms over all heads of queries and keys"),
    _has(lambda model: model.details.unit_qk_norm, "norms of queries and keys without weights", "--qk-l2-norm"),
    _has(lambda model: model.bias_out and not model.bias_all, "a bias of the attention's output alone"),
    _has(lambda model: model.chunked_windows, "windows in chunks"),
    _has(lambda model: model.windowed_heads is not None, "other heads in windowed layers"),
    _has(
        lambda model: model.latent is None and model.value_head_dim not in (None, model.head_dim),
        "values of another width",
    ),
    _has(lambda model: model.output_gate in ("element", "head"), "gates of the attention's output"),
    _has(lambda model: any(form.mixer == SHARED for form in model.forms), "indices of another layer's indexer"),
    _has(
        lambda model: model.details.indexer_interleaved,
        "interleaved rotary positions of the indexer",
        "--dsa-indexer-rope-interleaved",
        since=NEW,
    ),
    # Sizes of Mamba-2 that Megatron-core's layer fixes.
    _mamba("kernel", 4, "convolutions of Mamba-2 of width {}"),
    _mamba("conv_bias", True, "convolutions of Mamba-2 without biases"),
    _mamba("bias", False, "biases of Mamba-2's projections"),
    _has(lambda model: model.residual_streams > 1, "several residual streams"),
    _number("attention_softcap", "logits of attention capped at {}"),
    _number("logit_softcap", "logits capped at {}"),
    _number("attention_scale", "logits of attention scaled by {}"),
    _has(lambda model: model.details.attention_temperature, "queries scaled by their position"),
    _number("value_scale", "values of attention scaled by {}", 1.0),
    _number("qkv_clip", "queries, keys and values clipped to {}"),
    _number("embedding_scale", "embeddings scaled by {}", 1.0),
    _number("residual_scale", "residual branches scaled by {}", 1.0),
    _number("logit_scale", "logits scaled by {}", 1.0),
    _has(
        lambda model: model.experts is not None and model.details.weights_on_input,
        "weights on inputs of experts",
        "--moe-apply-probs-on-input",
    ),
    _has(
        lambda model: model.experts is not None and model.experts.expert_bias and model.bias_all,
        "biases of experts",
        # The grouped experts of Megatron-core refuse the fusion beside biases.
        "--no-bias-dropout-fusion",
    ),
    _has(
        lambda model: model.experts is not None and model.experts.expert_bias and not model.bias_all,
        "biases of experts alone",
    ),
    Fact(_group_words),
    _has(_selects_by_bias_after_softmax, "biases that select experts after softmax"),
    _has(_weights_sum_freely, "sigmoid weights of experts that do not sum to 1"),
)
"""The facts, in the order of their flags."""


def network_flags(model: ModelShape, release: str, releases: tuple[str, ...]) -> Iterator[str]:
    """Yield Megatron-LM's flags of the facts of a model, for one of the releases, which are sorted.

    A later flag of the same name replaces an earlier one.
    """
    flags: dict[str, str] = {}
    for fact in FACTS:
        present = fact.always or fact.words(model)
        if present and fact.flags is not None and releases.index(release) >= releases.index(fact.since):
            flags |= {flag.partition(" ")[0]: flag for flag in fact.flags(model)}
    yield from flags.values()


def without_flag(model: ModelShape, release: str, releases: tuple[str, ...]) -> Iterator[str]:
    """Yield the facts of a model that no flag of a release expresses."""
    for fact in FACTS:
        new = releases.index(release) < releases.index(fact.since)
        if (words := fact.words(model)) and (fact.flags is None or new or not fact.exact(model)):
            yield words


def recipe_warnings(model: ModelShape, title: str, source: str) -> Iterator[str]:
    """Yield warnings on the facts that a trainer's recipe must state, and on unknown fields of the config.json."""
    if parts := ", ".join(filter(None, (fact.words(model) for fact in FACTS))):
        yield f"{title} takes the model from {source}, which must have these parts of {model.name}: {parts}"
    yield from unread_warnings(model)


def unread_warnings(model: ModelShape) -> Iterator[str]:
    """Yield a warning on fields of the config.json that are unknown."""
    if model.details.unread:
        yield (
            f"config.json of {model.name} has fields that pipeplan does not know ({model.details.unread}): check whether "
            "the trained model needs them"
        )
