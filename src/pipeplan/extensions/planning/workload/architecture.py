"""Description of how the config.json of an architecture is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pipeplan.extensions.planning.workload.hub import Rule

USUAL_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "layers": "num_hidden_layers",
        "hidden": "hidden_size",
        "heads": "num_attention_heads",
        "kv_heads": "num_key_value_heads",
        "head_dim": "head_dim",
        "ffn": "intermediate_size",
        "vocab": "vocab_size",
        "tied": "tie_word_embeddings",
    }
)
"""Field of most architectures by key of the short form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Description of the config.json of one architecture.

    Attributes
    ----------
    name
        Its ``model_type``.
    also
        Other ``model_type`` values with the same fields.
    fields
        Fields that differ from the usual ones, by key of the short form.
    defaults
        Values of fields that a file leaves out.
    always
        Keys of the short form that hold for all its models; the default is RMSNorm, a gated FFN, no biases and no learned
        positions.
    rules
        Rules that need more than a renamed field; each may override the earlier ones.
    listed_layers
        Field that lists every layer, of which a file without a number of layers has as many.
    ffn_from_hidden
        FFN width as a multiple of the hidden size if its field is null or missing; 0: the field is required.
    """

    name: str
    also: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    always: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    ffn_from_hidden: int = 0
    listed_layers: str = ""
