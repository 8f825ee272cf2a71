"""What the names in recipes stand for: models, and helpers of trainers whose files are not there.

The data are in ``recipe_names.toml``, with their sources.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.models import models_by_function, named_model
from pipeplan.extensions.review.readers.recipe_values import Made, Stated
from pipeplan.extensions.review.settings import UNKNOWN
from pipeplan.extensions.review.stated import RawEntry

CONSUMERS = frozenset(
    {"pretrain", "finetune", "print", "info", "warning", "debug", "deepcopy", "copy", "getattr", "hasattr"}
    | {"isinstance", "len", "str", "int", "bool", "list", "set", "type", "repr", "join", "decoder_vocab_size", "asdict"}
    | {"get", "items", "keys", "values"}
)
"""Functions that use a configuration and change nothing of it."""

_HUB_NAME = re.compile(r"(?![./])[\w.-]+/[\w.-]+")
"""Matches the name of a model on a hub."""

_LOADING = frozenset({"from_hf_pretrained", "from_hf_config", "from_pretrained", "from_auto_config"})
"""Functions that load the model of their first argument."""

_MODEL_KEYS = ("hf_path", "hf_model_id", "hf_model_path", "pretrained_model_name_or_path", "model")
"""Fields that name a model on a hub."""

_CHECKPOINTING = {"FullAC": "full", "SelectiveAC": "selective", "MemoryBudgetAC": "selective"}
"""torchtitan's classes of activation checkpointing."""

_NUMBER_FORMAT = re.compile(r"_(float8|mxfp8|nvfp4)(?:_|$)")
"""Matches the part of the name of a function of torchtitan that converts products."""

_CONVERTER = re.compile(r"(Float8|MXFP8|NVFP4)\w*Converter")
"""Matches torchtitan's classes that convert products to a number format."""

_ADAPTERS = ("lora", "dora", "canonicallora", "vlmlora")
"""Names and classes of adapters."""


@cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads((Path(__file__).parent / "recipe_names.toml").read_text())


def settings_changed_by(function: str) -> list[str] | None:
    """Return the settings that a trainer's function changes as the machine demands; None for an unknown function."""
    changed: list[str] | None = _tables()["changes"].get(function)
    return changed


def is_helper(function: str) -> bool:
    """Return whether the tables say what a function returns."""
    return function in _tables()["helpers"]


def prepared(made: Made) -> Made:
    """Return what a call makes, with what the tables say of its class or function."""
    name = _class_of(made.callee)
    stated = _tables()["helpers"].get(name)
    for key, value in (stated or {}).items():
        owner = made
        *parts, last = key.split(".")
        for part in parts:
            owner = owner.fields.setdefault(part, Stated(Made(name, made.place))).raw
        place = SettingPlace(made.place.file, made.place.line)
        owner.fields.setdefault(last, Stated(value, place))
    path = _loaded(made)
    if "Bridge" in made.callee and path is not None:
        for key, value in _sizes_of(path.raw.rpartition("/")[2]).items():
            made.fields.setdefault(key, Stated(value, SettingPlace(path.place.file, path.place.line)))
    known = stated is not None or name in _LOADING or name.endswith("model_registry")
    # A class gets all that is set; what an unknown function sets is unknown, and what a printed object holds besides.
    made.open |= name == "Namespace" or (not known and not name[:1].isupper())
    return made


def _loaded(made: Made) -> Stated | None:
    """Return the name of the model that a call loads; None if it loads none."""
    if _class_of(made.callee) not in _LOADING or re.search("token|processor", made.callee, re.IGNORECASE):
        return None
    path = made.fields.get(0) or next((made.fields[key] for key in _MODEL_KEYS if key in made), None)
    return path if path is not None and isinstance(path.raw, str) else None


def _sizes_of(model: str) -> dict[str, Any]:
    """Return what Bridge takes from the configuration of a model on the hub, of the sizes that recipes use."""
    sizes: dict[str, Any] = _tables()["models"].get(model, {})
    if sizes or (shape := named_model(model)) is None:
        return {"mtp_num_layers": UNKNOWN, **sizes}
    experts = None if shape.experts is None else shape.experts.count
    return {"num_layers": shape.layers, "mtp_num_layers": shape.mtp_layers or None, "num_moe_experts": experts}


def named_by(made: Made, at: tuple[str, ...]) -> Iterator[RawEntry]:
    """Yield the settings that the class or function of an object stands for: its model, adapters, checkpointing."""
    name, place = _class_of(made.callee), made.place
    if name == "MegatronExportArguments":
        # Of ms-swift: a conversion trains nothing.
        yield _entry("phase", "export", place)
    if name in _CHECKPOINTING:
        yield _entry("activation_checkpoint.mode", _CHECKPOINTING[name], place)
    if (name.endswith("model_registry") and 0 in made) or name == "ModelSpec":
        flavor = made.fields.get(0) or made.fields.get("flavor")
        family = made.callee.rpartition(".")[0] if name != "ModelSpec" else str(made.fields.get("name", Stated("")).raw)
        if flavor is not None and isinstance(flavor.raw, str):
            yield from model_of_flavor(re.split(r"[./]", family)[-1], flavor.raw, flavor.place)
    if (path := _loaded(made)) is not None and _HUB_NAME.fullmatch(path.raw):
        yield RawEntry("model_name", path.raw.rpartition("/")[2], _keyed(path.place, "model_name"))
    # NeMo's classes are named as Bridge's: Llama3Config70B, Llama3ModelProvider70B.
    if provider := _tables()["providers"].get(name) or _tables()["providers"].get(
        name.replace("Config", "ModelProvider")
    ):
        yield _entry("model_name", provider, place)
    yield from model_of_recipe(name, place)
    if name.lower() in _ADAPTERS or (at[-1:] == ("peft",) and made.callee != "dict"):
        yield _entry("phase", "peft", place)
    if converter := _CONVERTER.match(name):
        yield _entry("precision", converter[1].lower(), place)
    if name == "LoRAConverter" and "rank" in made:
        yield _entry("phase", "peft", place)
        yield RawEntry("peft.rank", made.fields["rank"].raw, _keyed(made.fields["rank"].place, "rank"))
    for key, stated in made.fields.items():
        if key in _MODEL_KEYS and isinstance(stated.raw, str) and _HUB_NAME.fullmatch(stated.raw):
            yield RawEntry("model_name", stated.raw.rpartition("/")[2], _keyed(stated.place, "model_name"))
        if key in ("peft", "peft_scheme") and str(stated.raw).lower() in _ADAPTERS:
            yield _entry("phase", "peft", stated.place)


def registries() -> list[tuple[str, str]]:
    """Return torchtitan's flavors with their families."""
    return [(family, flavor) for family, flavors in _tables()["torchtitan"]["flavors"].items() for flavor in flavors]


def model_of_flavor(family: str, flavor: str, place: SettingPlace) -> Iterator[RawEntry]:
    """Yield the name and the sizes of a flavor in a registry of torchtitan; of an unknown one, a name that no model has."""
    registry = _tables()["torchtitan"]
    sizes = registry["flavors"].get(family, {}).get(flavor)
    yield _entry("model_name", f"flavor {flavor} of {family}", place)
    if sizes is not None:
        both = {**registry["all"], **registry["families"].get(family, {}), **sizes}
        yield from (_entry(key, value, place) for key, value in both.items())


def model_of_recipe(name: str, place: SettingPlace, registry: str = "", *, planned: bool = False) -> Iterator[RawEntry]:
    """Yield the model of a function in a trainer's registry: ``llama3_70b_pretrain_config`` of Bridge, torchtitan's flavors.

    Parameters
    ----------
    registry
        torchtitan's module, such as ``llama3``; empty: the one that has such a function.
    planned
        Whether the whole name may be that which a plan gives the function of a model that the trainer does not have.
    """
    match = re.match(r"(\w+?)_(?:pretrain|sft|peft|finetune|low_precision|\d+k_pretrain)_?\w*", name)
    stem = match[1] if match else name
    flavors = _tables()["torchtitan"]["functions"]
    found = [
        (family, flavor)
        for family, functions in flavors.items()
        for flavor, names in functions.items()
        if registry in ("", family) and name in names
    ]
    if match and (model := _tables()["recipes"].get(stem)):
        yield _entry("model_name", model, place)
    elif found:
        yield from model_of_flavor(*found[0], place)
    elif planned and (model := models_by_function().get(_NUMBER_FORMAT.sub("", stem))):
        yield _entry("model_name", model, place)
    if (found or planned) and (number_format := _NUMBER_FORMAT.search(name)):
        yield _entry("precision", number_format[1], place)


def _class_of(callee: str) -> str:
    """Return the last part of a dotted name, before torchtitan's inner class ``Config``."""
    return callee.removesuffix(".Config").rpartition(".")[2]


def _entry(key: str, value: Any, place: SettingPlace) -> RawEntry:
    """Return a setting at the place of a name that stands for it, which is not the setting's value."""
    return RawEntry(key, value, SettingPlace(place.file, place.line, key))


def _keyed(place: SettingPlace, key: str) -> SettingPlace:
    return SettingPlace(place.file, place.line, key, place.start, place.end)
