"""Text of a configuration with its form, and the settings that were read from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pipeplan.extensions.review.facts import LONGEST_NAME, Entry, ReviewFacts, SettingPlace
from pipeplan.extensions.review.models import models_by_function, named_model, properties_of
from pipeplan.extensions.review.settings import SETTINGS, UNKNOWN, setting_of, switch_of
from pipeplan.extensions.review.values import value_of
from pipeplan.trainers import TrainerKind

Defaults = Literal["none", "split", "all"]
"""Defaults of a trainer's parser: of no setting, of those of the pipeline split, or of all."""

_SPLIT = frozenset(
    {"tp", "pp", "vpp", "cp", "ep", "layout", "first_stage_layers", "last_stage_layers", "account_embedding"}
    | {"account_loss", "layers_per_virtual_stage", "hybrid_pattern", "group_size", "mtp_layers"}
)

Form = Literal["shell", "yaml", "toml", "json", "python", "log", "layout", "list"]


@dataclass(frozen=True, slots=True)
class SourceText:
    """Text of a file, and the form in which a patch changes it."""

    file: str
    text: str
    form: Form


@dataclass(frozen=True, slots=True)
class RawEntry:
    """Key and raw value of a setting as a file has them, with their place."""

    key: str
    raw: Any
    place: SettingPlace


@dataclass(frozen=True, slots=True)
class Reading:
    """Configuration that was read, and its source."""

    facts: ReviewFacts
    source: SourceText


_GENERATES = frozenset({"num-tokens-to-generate", "inference-max-requests", "max-tokens-to-generate"})
"""Arguments of jobs that generate text and do not train."""

_SERVERS = re.compile(
    r"^vllm |vllm\.entrypoints|sglang\.launch_server|text_generation_server|trtllm-|convert_checkpoint"
)
"""Matches programs that generate text, and that convert checkpoints for it."""


def phase_of(words: Iterable[str], file: str) -> list[RawEntry]:
    """Return the phase of a job whose words or keys show that it generates text; empty for jobs that train."""
    names = {word.lstrip("-").replace("_", "-") for word in words}
    trains = any("train-iters" in name for name in names)
    return [RawEntry("phase", "inference", SettingPlace(file))] if names & _GENERATES and not trains else []


def phase_of_command(command: str, file: str) -> list[RawEntry]:
    """Return the phase of a command that does not train by its program; empty for others."""
    if command.startswith("megatron export "):
        return [RawEntry("phase", "export", SettingPlace(file))]
    return [RawEntry("phase", "inference", SettingPlace(file))] if _SERVERS.search(command) else []


_MODEL_SIZE = re.compile(r"e\d+|\d+e|a?\d+(?:[.p]\d+)?[bt]")
"""Matches a size or a number of experts in the name of a recipe: ``70b``, ``a22b``, ``e128``."""

_NUMBER_FORMAT = re.compile(r"_(float8|mxfp8|nvfp4)(?:_|$)")
"""Matches the end of the name of a function of torchtitan that converts products."""


def configured_by(name: str, place: SettingPlace) -> list[RawEntry]:
    """Return what the name of the function that configures a training says: the model, and torchtitan's precision."""
    number_format = _NUMBER_FORMAT.search(name)
    precision = [] if number_format is None else [RawEntry("precision", number_format[1], place)]
    return [*_model_by_name(name, place), *precision]


def _model_by_name(name: str, place: SettingPlace) -> list[RawEntry]:
    """Return the model that the name of a recipe begins with, if it is known: ``llama3_70b_pretrain``."""
    words = name.lower().split("_")
    for end in range(len(words), 0, -1):
        begin = "-".join(words[:end])
        if known := models_by_function().get(begin.replace("-", "_")):
            return [RawEntry("model_name", known, place)]
        if named_model(begin) is not None:
            return [RawEntry("model_name", begin, place)]
        if _MODEL_SIZE.fullmatch(words[end - 1]):
            # The words before a size name a model of this size, or another one.
            family = models_by_function().get("_".join(words[: end - 1]), "")
            sized = f"{family}-{words[end - 1]}"
            return [RawEntry("model_name", sized, place)] if family and named_model(sized) is not None else []
    return []


def facts_of(
    entries: Iterable[RawEntry],
    trainer: TrainerKind,
    *,
    name: str = "",
    release: str = "",
    defaults: Defaults = "none",
) -> ReviewFacts:
    """Return the facts of settings in the order of a file; of a setting that occurs twice, the last value counts.

    Parameters
    ----------
    defaults
        Settings that have Megatron's default where the file leaves them out.
    """
    settings: dict[str, Entry] = {}
    entries = list(entries)
    for one in entries:
        for setting_name, value in _values(one):
            settings[setting_name] = Entry(value, one.place)
    for model_setting, value in properties_of(str(_value_in(settings, "model_name") or "")).items():
        if model_setting not in settings:
            settings[model_setting] = Entry(value, SettingPlace(key="the model's name"), assumed=True)
    if "megatron-core" in trainer.scopes:
        for setting in SETTINGS.values():
            split = defaults == "split" and setting.name not in _SPLIT
            if defaults != "none" and not split and setting.name not in settings and setting.default is not UNKNOWN:
                settings[setting.name] = Entry(setting.default, SettingPlace(key=setting.keys[0]), assumed=True)
        if defaults == "all" and settings["untied"].value is False and "tied" not in settings:
            settings["tied"] = Entry(True, SettingPlace(key="untie_embeddings_and_output_weights"), assumed=True)
    if trainer.name == "torchtitan":
        implied = [_of_tokens(settings, one) for one in entries if counts_tokens(one.key)]
        settings |= {name: entry for part in implied for name, entry in part.items() if name not in settings}
    return ReviewFacts(
        trainer,
        {key: entry for key, entry in settings.items() if entry.value is not UNKNOWN},
        release,
        name[:LONGEST_NAME],
    )


_MICROBATCH, _STEP = "num_tokens_per_microbatch_per_dp_rank", "num_tokens_per_train_step"


def counts_tokens(key: str) -> bool:
    """Return True for torchtitan's keys that count a batch in tokens."""
    return key.rpartition(".")[2].lstrip("-").replace("-", "_") in (_MICROBATCH, _STEP)


def _of_tokens(settings: dict[str, Entry], tokens: RawEntry) -> dict[str, Entry]:
    """Return the batch that a number of tokens implies: sequences, and one microbatch unless the file says more."""
    count, length = value_of(SETTINGS["seq_length"], tokens.raw), _value_in(settings, "seq_length")
    sequences = count // length if length and count is not UNKNOWN and count % length == 0 else None
    if tokens.key.replace("-", "_").endswith(_STEP):
        return {} if sequences is None else {"global_batch": Entry(sequences, tokens.place)}
    implied = {"microbatches": Entry(1, SettingPlace(key="num_pp_microbatches"), assumed=True)}
    return implied if sequences is None else {**implied, "micro_batch": Entry(sequences, tokens.place)}


def _value_in(settings: dict[str, Entry], name: str) -> Any:
    return settings[name].value if name in settings and settings[name].value is not UNKNOWN else None


def _values(one: RawEntry) -> Iterator[tuple[str, Any]]:
    switched = switch_of(one.key)
    if switched is not None:
        off = str(one.raw).lower() in ("false", "0")
        yield switched[0], UNKNOWN if one.raw is UNKNOWN else switched[1] != off
        return
    setting = setting_of(one.key)
    if setting is not None:
        yield setting.name, value_of(setting, one.raw)
