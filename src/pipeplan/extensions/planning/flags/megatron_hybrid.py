"""Megatron-LM's flags for models whose layers differ: ``--hybrid-layer-pattern`` and the sizes of its mixers.

Symbols are those of Megatron-core 0.19 (``hybrid_layer_allocation.py``): a symbol is a mixer or an FFN with its own norm and
residual, ``|`` ends a pipeline stage, and ``/`` begins the layers of multi-token prediction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeplan.extensions.planning.workload import LayerForm, ModelShape
from pipeplan.foundation.errors import ShapeError

SCRIPT = '"$MEGATRON/pretrain_hybrid.py"'
RELEASES = ("0.19",)
"""Releases of Megatron-core with every symbol below; the pattern is older, but had no stages or no latent attention."""

SPEC = "--spec megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec"

_MIXERS = {"mamba-2": "M", "gated-delta": "G"}
_FFNS = {"": "", "D": "-", "E": "E"}
_SIZES = {
    "mamba-2": {
        "state_heads": "--mamba-num-heads",
        "head_dim": "--mamba-head-dim",
        "state_dim": "--mamba-state-dim",
        "groups": "--mamba-num-groups",
    },
    "gated-delta": {
        "key_heads": "--linear-num-key-heads",
        "key_dim": "--linear-key-head-dim",
        "value_heads": "--linear-num-value-heads",
        "value_dim": "--linear-value-head-dim",
        "kernel": "--linear-conv-kernel-dim",
    },
}
_REPLACED = (
    "--num-layers",
    "--moe-layer-freq",
    "--mtp-num-layers",
    "--pipeline-model-parallel-layout",
    "--num-virtual-stages-per-pipeline-rank",
)
"""Flags whose meaning the pattern has."""


def is_hybrid(model: ModelShape) -> bool:
    """Return True if a model's layers cannot be written as transformer layers with attention and an FFN each."""
    return bool(model.mixers) or any(form.blocks < 2 for form in model.forms)


def require_buildable(model: ModelShape, release: str) -> None:
    """Raise ShapeError if a release cannot build a hybrid, or if one of its mixers has no symbol."""
    if release not in RELEASES:
        raise ShapeError(
            f"Megatron-core {release} cannot divide the different layers of {model.name} into stages: use "
            f"{RELEASES[0]} (--trainer-version {RELEASES[0]})"
        )
    for description in model.mixers:
        mixer = model.mixer(description.letter)
        if mixer is not None and description.kind not in _MIXERS:
            raise ShapeError(f"Megatron-LM cannot build {model.name}: it has no symbol for {mixer.title}")


def missing_symbols(model: ModelShape) -> Iterator[str]:
    """Yield a sentence if the pattern omits a property of layers."""
    written = {"A", *(mixer.letter for mixer in model.mixers)}
    if any((form.mixer and form.mixer not in written) or form.ffn not in _FFNS for form in model.forms):
        yield f"Megatron-LM's pattern has no windows and no hashed experts: layers of {model.name} are written without"


def hybrid_pattern(model: ModelShape, stages: Sequence[int]) -> str:
    """Return the pattern of a model with ``stages[i]`` layers on stage i, and of its MTP layers."""
    forms = iter(model.forms)
    parts = ["".join(_symbols(model, next(forms)) for _ in range(count)) for count in stages]
    further = f"/{_symbols(model, model.mtp_form)}" * (model.mtp_layers * model.mtp_passes)
    return "|".join(parts) + further


def layers_of_pattern(model: ModelShape, pattern: str) -> tuple[int, ...]:
    """Return the layers of each stage of a model's pattern. Raises ShapeError for the pattern of another model."""
    forms = iter(model.forms)
    counts = []
    for part in pattern.partition("/")[0].split("|"):
        count, left = 0, part
        while left:
            form = next(forms, None)
            symbols = "" if form is None else _symbols(model, form)
            if form is None or not left.startswith(symbols):
                raise ShapeError(f"the pattern of layers is not that of {model.name}", field="layers")
            count, left = count + 1, left.removeprefix(symbols)
        counts.append(count)
    return tuple(counts)


_LETTERS = {"M": "M", "G": "G", "*": "A", "+": "A", "-": "D", "E": "E"}
"""Letters of the short form's pattern by Megatron's symbols."""

_PAIR = re.compile(r"[MG*+][-E]")
"""Matches a mixer and the FFN behind it."""


def short_form_of(sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pattern, layers and mixers of the short form of a model that Megatron's pattern and sizes describe.

    Raises ShapeError for a pattern with a symbol that has no letter.
    """
    text, _, further = str(sizes["hybrid_pattern"]).partition("/")
    if not text or not set(text) <= {*_LETTERS, "|"}:
        raise ShapeError("the pattern of layers has an unknown symbol", field="layers")
    parts = text.split("|")
    # Where a mixer or an FFN stands alone, each is a layer of its own, as in Nemotron-H.
    paired = all(_PAIR.sub("", part) == "" for part in parts)
    layers = _PAIR.findall(text) if paired else text.replace("|", "")
    mixers = {}
    for kind, symbol in _MIXERS.items():
        if symbol not in text:
            continue
        own = {size: sizes.get(_setting_of(flag)) for size, flag in _SIZES[kind].items()}
        if kind == "mamba-2" and own["state_heads"] is None and own["head_dim"]:
            own["state_heads"] = 2 * sizes["hidden"] // own["head_dim"]  # Megatron's default
        mixers[symbol] = {"kind": kind, **own}
    return {
        "layers": len(layers),
        "pattern": " ".join("".join(_LETTERS[symbol] for symbol in layer) for layer in layers),
        "mixers": mixers,
        "mtp": len(further.split("/")) if further else 0,
    }


def _setting_of(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _symbols(model: ModelShape, form: LayerForm) -> str:
    attention = "*" if model.latent is None else "D" if model.sparse is not None else "+"
    # A mixer without a symbol has one that no pattern contains.
    kinds = {mixer.letter: _MIXERS.get(mixer.kind, "?") for mixer in model.mixers}
    mixer = kinds.get(form.mixer, attention) if form.mixer else ""
    return mixer + _FFNS.get(form.ffn, "E")


def size_flags(model: ModelShape) -> Iterator[str]:
    """Yield the flags of the sizes of a model's mixers, its output gate, and the width in which tokens go to experts."""
    yield SPEC
    if model.mtp_passes > 1:
        yield "--mtp-use-repeated-layer"
    for mixer in model.mixers:
        sizes = dict(mixer.sizes)
        for size, flag in _SIZES.get(mixer.kind, {}).items():
            if size in sizes:
                yield f"{flag} {sizes[size]}"
    if model.output_gate:
        yield "--attention-output-gate"
    if model.experts is not None and model.experts.latent_width:
        yield f"--moe-latent-size {model.experts.latent_width}"


def kept_flags(flags: Sequence[str]) -> list[str]:
    """Return the flags whose meaning the pattern does not have."""
    return [flag for flag in flags if flag.split()[0] not in _REPLACED]
