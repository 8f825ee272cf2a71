"""From what a reader finds to the facts of a configuration: settings, the trainer's defaults, the named model's sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pipeplan.extensions.review.facts import LONGEST_NAME, Entry, ReviewFacts, SettingPlace
from pipeplan.extensions.review.models import properties_of
from pipeplan.extensions.review.settings import SETTINGS, UNKNOWN, setting_of, switch_of
from pipeplan.extensions.review.values import value_of
from pipeplan.trainers import TrainerKind


@dataclass(frozen=True, slots=True)
class RawEntry:
    """Key and raw value of a setting as a file has them, with their place."""

    key: str
    raw: Any
    place: SettingPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """What a reader finds of one configuration.

    Attributes
    ----------
    entries
        Settings in the order of the file; of a setting that occurs twice, the last value counts.
    name
        Name of the configuration, in a file that may hold several.
    whole
        Whether the trainer gets nothing else: what is left out has the trainer's default.
    others
        Places of keys that no setting spells, such as the flags of a fork.
    """

    entries: tuple[RawEntry, ...]
    name: str = ""
    whole: bool = False
    others: tuple[SettingPlace, ...] = ()


Defaults = Literal["none", "split", "all"]
"""Defaults of a trainer's parser: of no setting, of those of the pipeline split, or of all."""

_SPLIT = frozenset(
    {"tp", "pp", "vpp", "cp", "ep", "layout", "first_stage_layers", "last_stage_layers", "account_embedding"}
    | {"account_loss", "layers_per_virtual_stage", "hybrid_pattern", "group_size", "mtp_layers"}
)


def facts_of(read: ReadSettings, trainer: TrainerKind, *, release: str = "") -> ReviewFacts:
    """Return the facts of a configuration that was read."""
    settings: dict[str, Entry] = {}
    for one in read.entries:
        for setting_name, value in _values(one, trainer.name):
            settings[setting_name] = Entry(value, one.place)
    for model_setting, value in properties_of(str(_value_in(settings, "model_name") or "")).items():
        if model_setting not in settings:
            settings[model_setting] = Entry(value, SettingPlace(key="the model's name"), assumed=True)
    defaults = _defaults(read.entries, trainer) if read.whole else "none"
    if "megatron-core" in trainer.scopes:
        for setting in SETTINGS.values():
            split = defaults == "split" and setting.name not in _SPLIT
            if defaults != "none" and not split and setting.name not in settings and setting.default is not UNKNOWN:
                settings[setting.name] = Entry(setting.default, SettingPlace(key=setting.keys[0]), assumed=True)
        if defaults == "all" and settings["untied"].value is False and "tied" not in settings:
            settings["tied"] = Entry(True, SettingPlace(key="untie_embeddings_and_output_weights"), assumed=True)
    if trainer.name == "torchtitan":
        implied = [_of_tokens(settings, one) for one in read.entries if counts_tokens(one.key)]
        settings |= {name: entry for part in implied for name, entry in part.items() if name not in settings}
    return ReviewFacts(
        trainer,
        {key: entry for key, entry in settings.items() if entry.value is not UNKNOWN},
        release,
        read.name[:LONGEST_NAME],
    )


def _defaults(entries: Sequence[RawEntry], trainer: TrainerKind) -> Defaults:
    """Return which defaults apply: all of Megatron-LM's if a file sets degrees and the model, else none."""
    keys = {one.key.lstrip("-").replace("-", "_") for one in entries}
    names = {setting.name for one in entries if (setting := setting_of(one.key, trainer.name)) is not None}
    if not names & {"tp", "pp"}:
        return "none"
    whole = bool(names & {"layers", "hybrid_pattern"}) and "use_checkpoint_args" not in keys
    return "all" if whole and trainer.name == "megatron-lm" else "split"


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


def _values(one: RawEntry, trainer: str) -> Iterator[tuple[str, Any]]:
    switched = switch_of(one.key)
    if switched is not None:
        off = str(one.raw).lower() in ("false", "0")
        yield switched[0], UNKNOWN if one.raw is UNKNOWN else switched[1] != off
        return
    setting = setting_of(one.key, trainer)
    if setting is not None:
        yield setting.name, value_of(setting, one.raw)
