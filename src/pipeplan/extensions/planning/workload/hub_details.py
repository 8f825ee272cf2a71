"""Fields of a hub's config.json that change what a network computes, and those that change nothing.

A rule takes the fields and returns keys of the short form, as the rules of ``hub``. A field that no
rule reads, and that is not among those without a meaning for the network, is returned by :func:`unread_fields`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import chain
from math import isclose, log, sqrt
from typing import Any

from pipeplan.extensions.planning.workload.hub import HubFields, Rule
from pipeplan.extensions.planning.workload.short_forms import as_number

TABLES: dict[str, Any] = tomllib.loads(
    files("pipeplan.extensions.planning.workload").joinpath("config_fields.toml").read_text("utf-8")
)
"""Content of ``config_fields.toml``."""

_ORDINARY: Mapping[str, Sequence[Any]] = {
    **dict.fromkeys(TABLES["ordinary"]["off"], (False,)),
    **dict.fromkeys(TABLES["ordinary"]["on"], (True,)),
    **TABLES["ordinary"]["values"],
}
"""Values of fields with which a network is the ordinary one of its architecture."""

_NO_MEANING = frozenset(chain.from_iterable(TABLES["without_meaning"].values()))

_ACTIVATION_FIELDS = (
    *("hidden_activation", "hidden_act", "activation_function", "mlp_hidden_act", "ffn_config.ffn_act_fn.name"),
    *("ffn_config.ffn_act_fn", "activation"),
)

_KINDS = ("position_embedding_type", "scoring_func", "topk_method")
"""Fields that are unread with any value that is not an ordinary one, although rules read them."""

_ROTARY = ("rope_scaling", "rope_parameters")
_NESTED = ("attn_config", "ffn_config", "linear_attn_config", *_ROTARY)
"""Fields whose parts are fields."""


def details(fields: HubFields) -> dict[str, Any]:
    """Return the details of a network; values that no network has are left to :func:`unread_fields`."""
    document: dict[str, Any] = {"activation": _activation(fields)}
    for key, names in TABLES["numbers"].items():
        values = [as_number(fields.value(name)) for name in names]
        own = [value for value in values if value is not None and value > 0]
        document[key] = next((value for value in own if value != 1), own[0] if own else None)
    for key, names in TABLES["switches"].items():
        if any(fields.value(name) not in (None, False, 0) for name in names):
            document[key] = True
    if fields.value("topk_method") == "group_limited_greedy":
        document["groups_by_best"] = True
    return document | _scales(fields, document["attention_scale"]) | _positions(fields)


def _activation(fields: HubFields) -> str | None:
    values = [fields.value(field) for field in _ACTIVATION_FIELDS]
    name = next((value for value in values if isinstance(value, str) and value), None)
    return None if name is None else TABLES["activations"].get(name, name[:40])


def _scales(fields: HubFields, attention: float | None) -> dict[str, Any]:
    """Return the factors on logits, which files state in other terms."""
    scalar = as_number(fields.value("query_pre_attn_scalar"))
    if scalar is not None and scalar > 0:
        attention = 1 / sqrt(scalar)
    divisor = as_number(fields.value("logits_scaling"))
    logits = {} if divisor in (None, 1) or divisor <= 0 else {"logit_scale": 1 / divisor}
    return {"attention_scale": None if _is_usual(fields, attention) else attention, **logits}


def _is_usual(fields: HubFields, scale: float | None) -> bool:
    """Return True if a factor on the logits of attention is 1 / sqrt(d)."""
    heads, hidden = as_number(fields.value("num_attention_heads")), as_number(fields.value("hidden_size"))
    dim = as_number(fields.value("head_dim")) or (hidden / heads if hidden and heads else None)
    return scale is None or (dim is not None and dim > 0 and isclose(scale, 1 / sqrt(dim), rel_tol=1e-6))


def _positions(fields: HubFields) -> dict[str, Any]:
    document: dict[str, Any] = {}
    kind = fields.value("position_embedding_type")
    if kind == "nope":
        document["positions"] = "none"
    elif fields.value("alibi") is True or fields.value("attn_config.alibi") is True:
        document["positions"] = "alibi"
    if kind == "rope_gptj":
        document["rotary_interleaved"] = True
    shared = _rotary_share(fields)
    if shared is not None and 0 < shared <= 1:
        document["rotary_share"] = shared
    scaling = _scaling(fields)
    if scaling:
        document["rope_scaling"] = scaling
    if _has_local_rotary(fields):
        document["local_rotary"] = True
    return document


def _rotary_share(fields: HubFields) -> float | None:
    """Return the fraction of a head that rotary positions turn; a number of dimensions precedes it."""
    turned, dim = as_number(fields.value("rotary_dim")), as_number(fields.value("head_dim"))
    if turned and dim:
        return turned / dim
    names = ("partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_percent")
    parts = ("rope_parameters.partial_rotary_factor", "rope_parameters.full_attention.partial_rotary_factor")
    shares = [as_number(fields.value(name)) for name in (*parts, *names)]
    return next((share for share in shares if share is not None), None)


_SCALING_PARTS = {
    "factor": "factor",
    "original": "original_max_position_embeddings",
    "low": "low_freq_factor",
    "high": "high_freq_factor",
    "beta_fast": "beta_fast",
    "beta_slow": "beta_slow",
    "mscale": "mscale",
    "mscale_all": "mscale_all_dim",
}
"""Numbers of a scaling in a config.json by key of the short form."""

_ROTARY_PARTS = (
    *(*_SCALING_PARTS.values(), "rope_type", "type", "rope_theta", "partial_rotary_factor", "attention_factor"),
    *("truncate", "long_factor", "short_factor", "mrope_section", "full_attention", "sliding_attention"),
)
"""Parts of the fields of rotary positions that are read, or that belong to a kind of scaling that is named."""


def _scaling(fields: HubFields) -> dict[str, Any] | None:
    """Return the scaling of rotary positions; None for the default kind."""
    fields.reads.update(f"{field}.{part}" for field in _ROTARY for part in _ROTARY_PARTS)
    own = fields.value("rope_scaling") or fields.value("rope_parameters.full_attention")
    parts = own if isinstance(own, Mapping) else fields.value("rope_parameters")
    if not isinstance(parts, Mapping):
        return None
    kind = parts.get("rope_type") or parts.get("type")
    if not isinstance(kind, str) or kind in ("default", "mrope", ""):
        return None
    numbers = {
        key: number
        for key, name in _SCALING_PARTS.items()
        if (number := as_number(parts.get(name))) is not None and number > 0
    }
    if not isinstance(numbers.get("original", 1), int):
        del numbers["original"]
    rounded = {"rounded": False} if parts.get("truncate") is False else {}
    if kind == "yarn":
        numbers |= _temperature(numbers, as_number(parts.get("attention_factor")))
    return {"kind": kind[:40], **numbers, **rounded}


def _temperature(numbers: Mapping[str, float], attention: float | None) -> dict[str, float]:
    """Return the ``mscale`` with which YaRN's factor on queries and keys is the one that a file states."""
    logarithm = 0.1 * log(max(1.0, numbers.get("factor", 1.0)))
    if attention is None or not logarithm:
        return {}
    mscale = (attention * (numbers.get("mscale_all", 0.0) * logarithm + 1.0) - 1.0) / logarithm
    usual = numbers.get("mscale", 1.0)
    return {} if isclose(mscale, usual, rel_tol=1e-6) else {"mscale": round(mscale, 12)}


def _has_local_rotary(fields: HubFields) -> bool:
    """Return True if windowed layers have other rotary positions than the others."""
    local, whole = (fields.value(f"rope_parameters.{kind}_attention") for kind in ("sliding", "full"))
    if isinstance(local, Mapping) and isinstance(whole, Mapping):
        names = ("rope_theta", "partial_rotary_factor", "rope_type", "factor")
        return any(local.get(name) != whole.get(name) for name in names)
    other = [as_number(fields.value(name)) for name in ("rope_local_base_freq", "swa_rope_theta", "local_rope_theta")]
    base = as_number(fields.value("rope_theta"))
    return any(number is not None and number != base for number in other)


def skipped_rotary(period: str = "", default: int = 0) -> Rule:
    """Return a rule for layers without rotary positions: every one of a period, or those with a 0 in a list.

    A layer with rotary positions is 1 in ``no_rope_layers``, and has its base in ``layer_rope_theta``. A list without a
    period is left unread.
    """

    def rule(fields: HubFields) -> dict[str, Any]:
        every = (fields.whole(period) if period else None) or default
        name = next((name for name in ("no_rope_layers", "layer_rope_theta") if fields.items(name)), "")
        if not name:
            return {"no_rotary_every": every}
        listed = fields.items(name)
        every = listed.index(0) + 1 if 0 in listed else 0
        regular = all(bool(turned) == (every == 0 or (layer + 1) % every != 0) for layer, turned in enumerate(listed))
        return {"no_rotary_every": every} if regular else {"unread": name}

    return rule


def scaled_embeddings(field: str = "") -> Rule:
    """Return a rule for embeddings that are multiplied by the square root of the hidden size, with a switch or always."""

    def rule(fields: HubFields) -> dict[str, Any]:
        if field and not fields.switch(field):
            return {}
        return {"embedding_scale": sqrt(fields.needed("hidden_size"))}

    return rule


def unread_fields(fields: HubFields) -> Iterator[str]:
    """Yield the fields of a config.json that no rule reads and that have a meaning; parts as ``attn_config.rope``."""
    for name, value in _flat(fields.content):
        part = name.rpartition(".")[2]
        if (
            value is None
            or (name in fields.reads and name not in _KINDS)
            or name in _NO_MEANING
            or (part != name and part in _NO_MEANING)
        ):
            continue
        if name == "layer_types" and isinstance(value, list) and all(kind == "full_attention" for kind in value):
            continue
        if name in _ORDINARY and any(value is usual or value == usual for usual in _ORDINARY[name]):
            continue
        yield name[:60]


def _flat(content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if name in _NESTED and isinstance(value, Mapping):
            yield from ((f"{name}.{part}", inner) for part, inner in value.items())
        else:
            yield str(name), value
