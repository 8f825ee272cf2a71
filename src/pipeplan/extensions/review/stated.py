"""Facts of a configuration from what a reader finds, the trainer's defaults and the sizes of the named model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeplan.extensions.review.defaults import SPLIT, defaults_of
from pipeplan.extensions.review.facts import LONGEST_NAME, Entry, ReviewFacts, SettingPlace
from pipeplan.extensions.review.forks import unread_flags
from pipeplan.extensions.review.keys import NONE_AT_ZERO, UNSAID_AT_NULL, setting_of, switch_of
from pipeplan.extensions.review.models import properties_of
from pipeplan.extensions.review.settings import SETTINGS, UNKNOWN
from pipeplan.extensions.review.values import value_of
from pipeplan.trainers import TrainerKind, trainer_kind


@dataclass(frozen=True, slots=True)
class RawEntry:
    """Key and raw value of a setting as a file has them, with their place."""

    key: str
    raw: Any
    place: SettingPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """Settings that a reader finds of one configuration.

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


def facts_of(read: ReadSettings, trainer: TrainerKind, *, release: str = "") -> ReviewFacts:
    """Return the facts of a configuration that was read."""
    settings: dict[str, Entry] = {}
    record = _RECORD.fullmatch(read.name)
    if record is not None:
        trainer = trainer_kind("megatron-bridge")
        read = replace(read, entries=(*_named_by(record, read.entries), *read.entries), whole=False)
        settings |= {name: Entry(value, SettingPlace(key=name), assumed=True) for name, value in _OF_RECORD.items()}
    for one in read.entries:
        for name, value in _values(one, trainer.name):
            if name != "model_name":
                settings[name] = Entry(value, one.place)
    if model := _model_name(read.entries, trainer.name):
        settings["model_name"] = model
    if trainer.name == "nemo-rl" and not _trains_on_all(read.entries):
        settings = {name: entry for name, entry in settings.items() if name not in ("nodes", "gpus_per_node")}
    _add_adapters(settings)
    if "device" not in settings and (gpu := _implied_gpu(read.entries)) is not None:
        settings["device"] = gpu
    for name, value in properties_of(str(_value_in(settings, "model_name") or ""), trainer.name).items():
        if name not in settings:
            settings[name] = Entry(value, SettingPlace(key="the model's name"), assumed=True)
    if read.whole:
        _add_defaults(settings, read.entries, trainer.name)
    if trainer.name == "torchtitan":
        implied = [_of_tokens(settings, one) for one in read.entries if counts_tokens(one.key)]
        settings |= {name: entry for part in implied for name, entry in part.items() if name not in settings}
    return ReviewFacts(
        trainer,
        {key: entry for key, entry in settings.items() if entry.value is not UNKNOWN},
        release,
        read.name[:LONGEST_NAME],
        unread=unread_flags(read.others, trainer.name),
    )


_RECORD = re.compile(
    r"_?([A-Z0-9_]+)_(?:PRETRAIN|SFT|LORA|PEFT)_CONFIG_([A-Z]{1,2}\d+)(?:_(BF16|NVFP4|FP8_[A-Z]{2}))?(?:_[A-Z0-9_]+)?"
)
"""Matches the name of a benchmark's record, by which Megatron-Bridge finds it: its model, job, GPU and number format.

The source is get_workload_base_config in Megatron-Bridge scripts/performance/utils/utils.py.
"""

_OF_RECORD = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "vpp": None, "micro_batch": 1}
"""Defaults of WorkloadBaseConfig in that file. What a record does not have, the model's recipe says."""


def _named_by(record: re.Match[str], entries: Sequence[RawEntry]) -> Iterator[RawEntry]:
    """Yield what the name of a record says."""
    first = entries[0].place
    place = SettingPlace(first.file, first.line, "the record's name")
    for key, value in zip(("model_name", "gpu_name", "precision"), record.groups(), strict=True):
        if value is not None:
            yield RawEntry(key, value.lower(), place)


_GPU_IN_PATH = re.compile(
    r"(?<![a-z\d])(?:[abhv]100|h[28]00|g?b[23]00|vr200|mi3(?:00x|25x|50x|55x))(?![a-z\d])", re.IGNORECASE
)
"""Matches the name of a GPU as a folder or a file has it: ``MI355X``, ``h100``, ``gb200``."""

_GPU_OF_PEAK = {"989": "H100"}
"""GPUs by benchmark.peak_tflops of NeMo AutoModel, as its examples/llm_benchmark say."""


def _implied_gpu(entries: Sequence[RawEntry]) -> Entry | None:
    """Return the GPU that the folder or the name of the files says, ``configs/MI355X/``, or the peak of a benchmark."""
    paths = {"/".join(one.place.file.split("/")[-2:]) for one in entries}
    found = {match[0].upper() for path in paths for match in _GPU_IN_PATH.finditer(path)}
    if found:
        return Entry(found.pop(), SettingPlace(key="the file's path"), assumed=True) if len(found) == 1 else None
    peaks = (one for one in entries if one.key == "benchmark.peak_tflops" and str(one.raw) in _GPU_OF_PEAK)
    return next((Entry(_GPU_OF_PEAK[str(one.raw)], one.place, assumed=True) for one in peaks), None)


def _model_name(entries: Sequence[RawEntry], trainer: str) -> Entry | None:
    """Return the model's name: the first key's that names a known model, else the last key's; None without one.

    A script has the model's hub name, folders of checkpoints and the tokenizer's in keys of their own.
    """
    names: dict[str, Entry] = {}
    for one in entries:
        setting = setting_of(one.key, trainer)
        if setting is not None and setting.name == "model_name" and (text := value_of(setting, one.raw)) is not UNKNOWN:
            names[one.key] = Entry(text, one.place)
    known = (entry for entry in names.values() if "layers" in properties_of(str(entry.value), trainer))
    return next(known, None) or next(reversed(names.values()), None)


def _trains_on_all(entries: Sequence[RawEntry]) -> bool:
    """Return True if NeMo RL trains on all GPUs of its cluster: it generates on the same ones, or not at all."""
    shared = [str(one.raw).lower() for one in entries if one.key.endswith("generation.colocated.enabled")]
    return shared[-1] == "true" if shared else any(one.key.startswith(("sft.", "dpo.")) for one in entries)


def _add_adapters(settings: dict[str, Entry]) -> None:
    """Add what a file says of adapters: trainers spell it as a rank above 0, as a scheme or as both."""
    scheme, rank = _value_in(settings, "peft"), settings.get("lora_rank")
    if scheme is not None and "lora" not in str(scheme).lower() and "dora" not in str(scheme).lower():
        settings.pop("lora_rank", None)
    elif scheme is not None and "phase" not in settings:
        settings["phase"] = Entry("peft", settings["peft"].place)
    elif rank is not None and isinstance(rank.value, int) and rank.value > 0 and "phase" not in settings:
        settings["phase"] = Entry("peft", rank.place)


_SIZED = frozenset({"megatron-lm", "mindspeed", "pai-megatron-patch", "slime"})
"""Trainers whose parser also takes the model's sizes."""


def _add_defaults(settings: dict[str, Entry], entries: Sequence[RawEntry], trainer: str) -> None:
    """Add the trainer's defaults of settings that a whole configuration of parallel training leaves out.

    Megatron-LM gets the sizes of its model with its arguments: where they are missing, a script that is not read sets them,
    and only what concerns the split is taken as left out.
    """
    if not settings.keys() & {"tp", "pp"} and trainer != "ms-swift":
        return
    defaults, sized = defaults_of(trainer), True
    if trainer in _SIZED:
        keys = {one.key.lstrip("-").replace("-", "_") for one in entries}
        own = any(name in settings and not settings[name].assumed for name in ("layers", "hybrid_pattern"))
        sized = own and "use_checkpoint_args" not in keys
    for name, value in defaults.items():
        applies = (sized or name in SPLIT) and (name != "lora_rank" or _value_in(settings, "phase") == "peft")
        if applies and name not in settings and value is not UNKNOWN:
            settings[name] = Entry(value, SettingPlace(key=SETTINGS[name].keys[0]), assumed=True)
    if trainer in _SIZED and sized:
        _add_implied(settings)


def _add_implied(settings: dict[str, Entry]) -> None:
    """Add what Megatron's defaults imply: embeddings that are not untied are tied, and ungrouped heads have keys each."""
    untied, heads = settings.get("untied"), settings.get("heads")
    if untied is not None and untied.value is False and "tied" not in settings:
        settings["tied"] = Entry(True, SettingPlace(key="untie_embeddings_and_output_weights"), assumed=True)
    if _value_in(settings, "group_query_attention") is False and heads is not None and "kv_groups" not in settings:
        settings["kv_groups"] = Entry(heads.value, SettingPlace(key="group_query_attention"), assumed=True)


_MICROBATCH, _STEP = "num_tokens_per_microbatch_per_dp_rank", "num_tokens_per_train_step"


def counts_tokens(key: str) -> bool:
    """Return True for torchtitan's keys that count a batch in tokens."""
    return key.rpartition(".")[2].lstrip("-").replace("-", "_") in (_MICROBATCH, _STEP)


def is_known(key: str, trainer: str | None = None) -> bool:
    """Return True if a review knows what a key spells, for a trainer or for any (:func:`.keys.setting_of`)."""
    return setting_of(key, trainer) is not None or switch_of(key) is not None or counts_tokens(key)


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
    if setting is None:
        return
    value = value_of(setting, one.raw)
    if value is None and one.key.rpartition(".")[2].lower() in UNSAID_AT_NULL.get(trainer, ()):
        value = UNKNOWN
    off = value == 0 and setting.name in NONE_AT_ZERO.get(trainer, NONE_AT_ZERO[""])
    if not (setting.kind == "count" and (off or value == -1)):
        yield setting.name, value
