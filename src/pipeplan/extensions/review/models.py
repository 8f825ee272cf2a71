"""Models that configurations name: their shapes, and the properties of families that rules need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pipeplan.extensions.planning.flags import function_name, layers_of_pattern, short_form_of
from pipeplan.extensions.planning.workload import ModelShape, from_dict, known_model, model_names, parameter_counts
from pipeplan.extensions.review.sizes import sizes_of_name
from pipeplan.foundation.errors import PipeplanError, ShapeError

_SPARSE_ATTENTION = re.compile(r"glm-?5|deepseek-?v3\.?2", re.IGNORECASE)
"""Families whose attention Megatron runs absorbed, as its variant ``dsa``."""

_VISION = re.compile(r"(?:^|[-_ .\d])(?:vl|vlm|omni|vision|4\.?5v|4\.?6v)(?:$|[-_ ])", re.IGNORECASE)

_NOISE = re.compile(
    r"\(.*?\)|[-_ ](?:moe|hf|instruct|preview|base|chat|it|pretrain|sft|rl|grpo|megatron|mcore|dist|torch|slime|verl|mbridge"
    r"|config|recipe|fp8|bf16|fp16|int4|int8|nvfp4|mxfp4|awq|gptq|ckpt|checkpoint|release|thinking|math|coder|text|v[0-3]\.\d|\d{4})"
    r"(?=$|[-_ ])|^(?:meta|nvidia|hf|ai21|mcore)[-_ ](?=[a-z])",
    re.IGNORECASE,
)
"""Words of a name that leave the model's sizes as they are: its training, its number format, the form of its checkpoint."""

_REDUCED = re.compile(
    r"proxy|debug|test|toy|dummy|smoke|reduced|pruned|random|mini[-_ ]?model|tiny(?!llama)"
    r"|(?<![a-z\d])\d+[-_ ]?(?:l|layers?)(?![a-z])",
    re.IGNORECASE,
)
"""Matches the name of a model that is smaller than the one whose name it has."""

_ALIASES = {
    "deepseekv316b": "deepseek-v2-lite",
    "deepseekv216b": "deepseek-v2-lite",
    "deepseek216b": "deepseek-v2-lite",
    "deepseek671b": "deepseek-v3",
    "deepseekv3671b": "deepseek-v3",
    "deepseekv3.1": "deepseek-v3",
    "deepseekr1": "deepseek-v3",
    "qwq32b": "qwen2.5-32b",
    "glm4.5106ba12b": "glm-4.5-air",
    "glm4.5v": "glm-4.5-air",
    "glm4.6v": "glm-4.5-air",
    "glm4.6": "glm-4.5",
    "glm4.7": "glm-4.5",
    "glm4.730ba3b": "glm-4.7-flash",
    "glm5.1": "glm-5",
    "internvl3.530ba3b": "qwen3-30b-a3b",
    "llama417b16e": "llama4-scout",
    "llama417b128e": "llama4-maverick",
    "minimaxm2.1": "minimax-m2",
    "minimaxm2.5": "minimax-m2",
    "minimaxm2.7": "minimax-m2",
    "nemotron3nano": "nemotron-3-nano-30b-a3b",
    "nemotron3super": "nemotron-3-super-120b-a12b",
    "moonlight": "moonlight-16b-a3b",
}
"""Names, without dashes, of models whose sizes are those of one that is published under another name."""

_RENAMED = (
    (r"^qwen[-_ ]?2(?=[-_ ](?:0\.5|1\.5|7|72)b$)", "qwen2.5"),
    (r"^deepseek-r1(?:-\d{4})?-distill-(qwen)", r"\g<1>2.5"),
    (r"^deepseek-r1(?:-\d{4})?-distill-(llama)", r"\g<1>3"),
    (r"[-_ ]?(?:vl|omni)(?=$|[-_ ])", ""),  # the language model of a vision model
    (r"^([a-z]+)(\d)(\d)(?=$|[-_ ])", r"\1\2.\3"),
    (r"^(kimi|glm|minimax|deepseek)[-_ ]?([mkv]?\d)(\d)(?=$|[-_ ])", r"\1-\2.\3"),
    (r"(llama)[-_ ]?3[._]?[13](?!.*405)", r"\g<1>3"),
)
"""Parts of names, and what a published model of the same sizes has in their place."""

_SIZE = re.compile(r"[-_ ](\d+(?:\.\d+)?)([bt])(?:[-_ ]a\d+b)?$", re.IGNORECASE)
"""Matches the number of parameters at the end of a name: ``-355B``, ``-30B-A3B``, ``-1T``."""

_CLOSE = 0.2
"""Largest relative difference between the parameters in a name and those of a shape without the size in its name."""


@cache
def named_model(name: str) -> ModelShape | None:
    """Return the shape of the model that a configuration names, in any usual spelling; None if it is unknown.

    A name may be that of a hub, a folder with the model's checkpoint, or one of a trainer's own. A reduced model
    (``deepseek_v3_debugmodel``, ``-proxy``, ``-4layer``) is not the model in its name.
    """
    last = _last_part(name)
    if _REDUCED.search(last) or len(last) > _LONGEST:
        return None
    plain = _without_noise(last)
    named = (known_model(_ALIASES.get(_joined(one), one)) for one in (last, *_spellings(plain)))
    return next((shape for shape in named if shape is not None), None) or _by_family(plain)


def _last_part(name: str) -> str:
    """Return the model in a hub's name, a path, a folder of a hub's cache or the name of a file."""
    return re.sub(r"\.ya?ml$", "", name.strip().rstrip("/").rsplit("/", 1)[-1].rsplit("--", 1)[-1])


def _without_noise(name: str) -> str:
    return _NOISE.sub("", _NOISE.sub("", name)).strip(" -_")


_LONGEST = 100
"""Maximum number of characters of a model's name."""


def _joined(name: str) -> str:
    return re.sub(r"[-_ ]", "", name.lower())


def _spellings(name: str) -> tuple[str, ...]:
    """Return spellings to try: the name itself, and those of models whose sizes it shares."""
    spellings = [name, re.sub(r"(?<=\d)[pP](?=\d)", ".", name), re.sub(r"(?<=\d)_(?=\d(?:[-_ b]|$))", ".", name)]
    for pattern, other in _RENAMED:
        spellings += [re.sub(pattern, other, one, flags=re.IGNORECASE) for one in spellings]
    return tuple(dict.fromkeys(spellings))


@cache
def similar_model(name: str) -> ModelShape | None:
    """Return the shape of a model's predecessor, for an estimate: Kimi-K2 for Kimi-K3; None if it is of another size."""
    shapes = (named_model(spelling) for spelling in _older_names(name))
    size = _SIZE.search(_NOISE.sub("", name).strip(" -_"))
    for shape in shapes:
        if shape is not None and (size is None or abs(parameter_counts(shape).total / _parameters(size) - 1) < _CLOSE):
            return shape
    return None


_VERSION = re.compile(r"(?<=[a-z-])([2-9])(?:\.(\d))?(?=[-_ ]|$)", re.IGNORECASE)
"""Matches the version in a model's name: ``GLM-4.7``, ``Kimi-K3``."""


def _older_names(name: str) -> Iterator[str]:
    """Yield the names of earlier versions of a model, the latest first."""
    match = None if name.lower().startswith("gpt") else _VERSION.search(name)
    if match is None:
        return
    major, minor = int(match[1]), int(match[2] or 0)
    versions = [f"{major}.{older}" for older in range(minor - 1, 0, -1)] + [str(major)] * bool(minor)
    versions += [f"{major - 1}.{older}" for older in range(9, 0, -1)] + [str(major - 1)]
    yield from (name[: match.start()] + version + name[match.end() :] for version in versions)


def _parameters(size: re.Match[str]) -> float:
    """Return the number of parameters that a name ends in."""
    return float(size[1]) * (1e12 if size[2].lower() == "t" else 1e9)


def _by_family(name: str) -> ModelShape | None:
    """Return the shape of a name without its size, if its parameters are of that number: ``GLM-4.5-355B``."""
    size = _SIZE.search(name)
    family = "" if size is None else name[: size.start()]
    shape = known_model(_ALIASES.get(_joined(family), family))
    if size is None or shape is None:
        return None
    return shape if abs(parameter_counts(shape).total / _parameters(size) - 1) < _CLOSE else None


def shape_of_sizes(sizes: Mapping[str, Any]) -> ModelShape | None:
    """Return the shape of a model whose sizes a configuration sets, as Megatron's arguments do; None if they do not.

    A published model with all of these sizes is that model.

    Parameters
    ----------
    sizes
        Settings by name. A vocabulary that is left to the tokenizer is taken as :data:`_USUAL_VOCABULARY`.
    """
    known = _published(sizes)
    if known is not None:
        return known
    pattern = sizes.get("hybrid_pattern")
    if not all(sizes.get(name) for name in ("hidden", "heads")) or not (pattern or sizes.get("layers")):
        return None
    document = {
        "name": "the configuration's model",
        "vocab": sizes.get("vocab") or _USUAL_VOCABULARY,
        "gated": bool(sizes.get("gated")),
        "tied": bool(sizes.get("tied")),
        "kv_heads": sizes.get("kv_groups") or sizes["heads"],
        "norm": "layer" if str(sizes.get("normalization")).lower() == "layernorm" else "rms",
        "bias_qkv": bool(sizes.get("add_qkv_bias")),
        "bias_all": bool(sizes.get("add_bias_linear")),
        "qk_norm": bool(sizes.get("qk_layernorm")) and not sizes.get("mla"),  # latent attention has its own norms
        "learned_positions": _learned_positions(sizes),
        "mtp": sizes.get("mtp_layers") or 0,
        "output_gate": "query" if sizes.get("output_gate") else None,
        **{name: sizes.get(name) for name in ("layers", "hidden", "heads", "head_dim", "ffn")},
    }
    if not document["ffn"]:
        document["ffn"] = 4 * sizes["hidden"]
    if sizes.get("window"):
        document |= _windows(sizes)
    if sizes.get("softmax") == "learnable":
        document["attention_sinks"] = True
    if sizes.get("experts"):
        document |= {
            "experts": sizes["experts"],
            "topk": sizes.get("topk") or 2,
            "moe_ffn": sizes.get("moe_ffn") or document["ffn"],
            "shared_ffn": sizes.get("shared_expert_size"),
            "dense_layers": _leading_dense(str(sizes.get("moe_layer_freq") or "")),
        }
    if sizes.get("mla"):
        document |= {
            "kv_heads": None,
            "head_dim": None,
            "mla": {
                "q_lora": sizes.get("q_lora"),
                "kv_lora": sizes.get("kv_lora") or 512,
                "qk_nope": sizes.get("qk_nope") or 128,
                "qk_rope": sizes.get("qk_rope") or 64,
                "v": sizes.get("v_dim") or 128,
            },
        }
    try:
        if pattern:
            document |= short_form_of(sizes) | {"dense_layers": None, "moe_latent": sizes.get("moe_latent")}
        return from_dict({name: value for name, value in document.items() if value is not None})
    except PipeplanError:
        return None


_FEWEST_SIZES = ("hidden", "heads", "ffn", "vocab")
"""Sizes by which a published model is recognized, of which a file must have all that the model has."""


def _published(sizes: Mapping[str, Any]) -> ModelShape | None:
    """Return the published model with the sizes that a configuration sets; None if there is none, or not a single one."""
    if not all(sizes.get(name) for name in ("hidden", "heads")) or not (
        sizes.get("layers") or sizes.get("hybrid_pattern")
    ):
        return None
    return next((shape for shape in _shapes() if _has(shape, sizes)), None)


@cache
def models_by_function() -> dict[str, str]:
    """Return the published models by the names of functions that configure them: ``qwen2_5_72b``, and ``qwen25_72b``."""
    return {function_name(shape, joined=joined): shape.name for shape in _shapes() for joined in (False, True)}


@cache
def _shapes() -> tuple[ModelShape, ...]:
    """Return the shapes of all published models."""
    shapes = (known_model(name) for name in model_names())
    return tuple(dict.fromkeys(shape for shape in shapes if shape is not None))


def _has(shape: ModelShape, sizes: Mapping[str, Any]) -> bool:
    own = _sizes_of(shape)
    stated = {name: value for name, value in sizes.items() if name in own and value is not None}
    needed = {name for name in _FEWEST_SIZES if own[name] is not None}
    if (shape.sparse is not None) != (sizes.get("attention_variant") == "dsa"):
        return False
    pattern = str(sizes.get("hybrid_pattern") or "")
    if pattern and not _has_pattern(shape, pattern):
        return False
    return needed <= stated.keys() and all(own[name] == value for name, value in stated.items())


def _has_pattern(shape: ModelShape, pattern: str) -> bool:
    try:
        return sum(layers_of_pattern(shape, pattern)) == shape.layers
    except ShapeError:
        return False


def _sizes_of(shape: ModelShape) -> dict[str, Any]:
    """Return a shape's sizes by the names of settings; None for what the model does not have."""
    experts, latent = shape.experts, shape.latent
    return {
        "layers": shape.layers,
        "hidden": shape.hidden,
        "heads": shape.heads,
        "ffn": shape.ffn,
        "vocab": shape.vocabulary,
        "gated": shape.gated,
        "untied": not shape.tied_embeddings,
        "add_bias_linear": shape.bias_all,
        "mla": latent is not None,
        "experts": experts and experts.count,
        **(
            {}
            if latent is not None
            else {
                "kv_groups": shape.kv_heads or shape.heads,
                "head_dim": shape.head_dim or shape.hidden // shape.heads,
                "add_qkv_bias": shape.bias_qkv and not shape.bias_all,
            }
        ),
        **({} if experts is None else {"topk": experts.top_k, "moe_ffn": experts.width}),
        **({} if latent is None else {"q_lora": latent.query_rank, "kv_lora": latent.key_value_rank}),
    }


def _learned_positions(sizes: Mapping[str, Any]) -> int | None:
    learned = sizes.get("position_embedding") == "learned_absolute"
    return sizes.get("max_position_embeddings") if learned else None


def _windows(sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attention's window: Megatron counts the keys before the query and behind it."""
    before = re.search(r"\d+", str(sizes["window"]))
    every = str(sizes.get("window_every") or "")
    return {
        "sliding_window": None if before is None else int(before[0]) + 1,
        "sliding_every": int(every) if every.isdigit() else 1,
    }


_USUAL_VOCABULARY = 128_256
"""Vocabulary that an estimate assumes where the tokenizer decides."""


def _leading_dense(pattern: str) -> int | None:
    """Return the leading dense layers of Megatron's pattern of layers with experts: 3 for ``[0]*3+[1]*58``."""
    match = re.match(r"\(?\[\s*0\s*\]\s*\*\s*(\d{1,4})", pattern)
    if match:
        return int(match[1])
    listed = re.match(r"\[?\s*((?:0[\s,]+)+)1", pattern)
    return None if listed is None else listed[1].count("0")


def properties_of_shape(shape: ModelShape) -> dict[str, Any]:
    """Return the settings that a model's shape implies; experts are None for a dense model."""
    properties = {
        "layers": shape.layers,
        "heads": shape.heads,
        "kv_groups": shape.kv_heads,
        "hidden": shape.hidden,
        "tied": shape.tied_embeddings,
        # A mixer of its own, as DeepSeek-V4 has, may run as latent attention or not.
        "mla": None if shape.pattern and shape.latent is None else shape.latent is not None,
    }
    stated = {name: value for name, value in properties.items() if value is not None}
    return {**stated, "experts": None if shape.experts is None else shape.experts.count}


def properties_of(name: str, trainer: str = "") -> dict[str, Any]:
    """Return the settings that a model's name implies, for rules: sizes of a known shape, and traits of its family.

    Parameters
    ----------
    trainer
        Name of the trainer, whose own file of a model of that name may differ from the published one.
    """
    last = _last_part(name)
    spellings = () if _REDUCED.search(last) else _spellings(_without_noise(last))
    known = (sizes_of_name(last, trainer), *map(sizes_of_name, spellings))
    sizes = next(filter(None, known), None)
    shape = named_model(name) if sizes is None else None
    properties = properties_of_shape(shape) if shape is not None else dict(sizes or {})
    if _SPARSE_ATTENTION.search(name):
        properties["attention_variant"] = "dsa"
    elif shape is not None and shape.sparse is None and not shape.pattern:
        properties["attention_variant"] = None
    properties["vision"] = _VISION.search(name) is not None
    return properties
