"""From a file to the configurations in it: which form it has, which trainer it is for, and its settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from os.path import normpath
from pathlib import Path
from typing import Any

from pipeplan.extensions.review.facts import ReviewFacts, SettingPlace
from pipeplan.extensions.review.readers import documents
from pipeplan.extensions.review.readers.own import configuration_in, is_own, read_own
from pipeplan.extensions.review.readers.recipes import recipes_in
from pipeplan.extensions.review.readers.shell import read_in_shell
from pipeplan.extensions.review.readers.source import Form, Reading, SourceText, phase_of, text_near
from pipeplan.extensions.review.stated import RawEntry, ReadSettings, facts_of, is_known
from pipeplan.foundation.errors import FormatError, InputError
from pipeplan.foundation.files import MEBIBYTE, read_text
from pipeplan.trainers import OTHER, TrainerKind, trainer_kind

MOST_BYTES = 16 * MEBIBYTE
"""Maximum size of a file with a configuration, in bytes."""

_MOST_LINES = 200_000
"""Maximum number of lines of a file other than a log."""

_FORMS: dict[str, Form] = {
    ".py": "python",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
    ".json": "json",
    ".sh": "shell",
    ".bash": "shell",
    ".slurm": "shell",
    ".sbatch": "shell",
    ".log": "log",
    ".out": "log",
}

_LAYOUT = re.compile(r"\s*E[EtmL|*()\d,\s]*")
_LONGEST_LAYOUT = 20_000
"""Maximum number of characters of a file with a layout string."""

_TRAINERS_BY_TEXT = (
    (r"batch_accumulation_per_replica|\bnanotron\b", "nanotron"),
    (r"[\"']?pipe[-_]parallel[-_]size[\"']?\s*:", "gpt-neox"),
    (r"parallelism\.(?:pipeline|tensor|data)_parallel|torchtitan|^\s*\[parallelism\]|_parallel_degree", "torchtitan"),
    (
        r"nemo_automodel|\bautomodel\b|--distributed\.(?:strategy|pp_size)|[lv]lm_finetune/finetune\.py",
        "nemo-automodel",
    ),
    (r"megatron[._]bridge|AutoBridge|ConfigContainer", "megatron-bridge"),
    (r"\bmegatron (?:sft|pt|rlhf|export)\b|\bswift\b", "ms-swift"),
    (r"\bprimus\b|^\s*pre_trainer:", "primus"),
    (r"nemo_run|from nemo|nemo\.collections|nemo\.lightning|^\s*trainer\.strategy\.", "nemo"),
    (r"nemo_rl|^(?:grpo|policy):\s*$|megatron_cfg[:.]", "nemo-rl"),
    (r"actor_rollout_ref|\bverl\b", "verl"),
    (r"openrlhf", "openrlhf"),
    (r"MEGATRON_PATCH_PATH|pai[-_]megatron", "pai-megatron-patch"),
    (r"mindspeed|--num-layer-list|--noop-layers", "mindspeed"),
    (r"--actor-num-gpus-per-node|--rollout-num-gpus|\bslime\b", "slime"),
    (r"megatron-bridge|scripts/(?:training|performance)/run_(?:recipe|script)\.py", "megatron-bridge"),
    (r"zero_optimization|train_micro_batch_size_per_gpu|--deepspeed\b|PipelineModule", "deepspeed"),
    (r"megatron|pretrain_gpt|model[-_]parallel[-_]size|num-layers-per-virtual", "megatron-lm"),
)
"""Patterns of a file's text for each trainer; the first match counts."""


def read_configurations(path: Path, *, trainer: str | None = None, release: str = "") -> tuple[Reading, ...]:
    """Return the configurations of a file.

    Parameters
    ----------
    trainer
        Trainer that the file is for; None: as its text shows.
    release
        Release of the trainer; empty: unknown.

    Raises
    ------
    InputError
        If the file cannot be read, or holds no configuration.
    FormatError
        If the file is too large, or not in the language of its suffix.
    """
    if path.is_fifo() and not path.as_posix().startswith(("/dev/", "/proc/")):
        raise InputError(f"the configuration {path} is a named pipe: expected a file")
    text = read_text(path, limit=MOST_BYTES, what="configuration")
    return read_text_of(text, str(path), trainer=trainer, release=release, folder=path.parent)


def read_text_of(
    text: str, file: str, *, trainer: str | None = None, release: str = "", folder: Path | None = None
) -> tuple[Reading, ...]:
    """Return the configurations of a text; see :func:`read_configurations`.

    ``file`` selects the form by its suffix, and ``folder`` is that of the files that a configuration names; None: names of
    files are refused.
    """
    form = _form(text, file)
    if form != "log" and text.count("\n") > _MOST_LINES:
        raise FormatError(f"the configuration {file} has more than {_MOST_LINES:,} lines")
    source = SourceText(file, text, form)
    own = _own(source)
    if own is not None:
        if trainer is not None or release:
            raise InputError(
                f"{file} is pipeplan's own configuration, which is of no trainer: leave the trainer and its release away",
                field="trainer" if trainer is not None else "trainer_version",
            )
        return tuple(Reading(facts, source) for facts in read_own(own, file, folder))
    kind = _trainer(text, trainer)
    if kind is OTHER and form in ("log", "layout"):
        kind = trainer_kind("megatron-lm")
    readings = tuple(
        Reading(facts_of(read, kind, release=release), source, others, folder)
        for read, others in _READERS[form](source, kind, folder)
    )
    readings = tuple(reading for reading in readings if _sets_up_training(reading.facts))
    if not readings:
        raise InputError(
            f"{file} has no setting of parallel training that a review knows: expected arguments of a trainer, a recipe "
            "or a layout"
        )
    return readings


def _sets_up_training(facts: ReviewFacts) -> bool:
    """Return True if a configuration says more than which model a job takes, and in which phase and number format."""
    stated = {name for name, entry in facts.settings.items() if not entry.assumed}
    return bool(stated - {"model_name", "phase", "precision", "device"})


def _own(source: SourceText) -> Mapping[str, Any] | None:
    """Return pipeplan's own configuration that a text is, or that its commands write; None if it has none."""
    if source.form == "shell":
        return configuration_in(source.text)
    document = (
        documents.parsed(source) if source.form in ("yaml", "toml", "json") and "cluster" in source.text else None
    )
    if isinstance(document, Mapping) and isinstance(best := document.get("best"), Mapping):
        # A plan's answer as JSON.
        document = best.get("document")
    return document if is_own(document) else None


_ARGUMENTS = re.compile(r"""\s*\[\s*(["'])--[a-z][\w.-]*(?:=[^"'\n]*)?\1\s*[,\]]""")
"""Matches the start of a command's arguments that are written as a list: ``["--num-layers", "46"]``."""

_FORMS_BY_TEXT: tuple[tuple[str, Form], ...] = (
    (r"\A\s*Namespace\(", "python"),
    (documents.ARGUMENTS.pattern, "log"),
    (r"Running with (?:args|configs?): \{\s*$", "log"),
    (r"\A\s*(?:\{|\[\s*\{)", "json"),
    (r"^(?:\S*\d\]?:)?\s+_target_: ", "log"),
    (r"(?:^|\s)--[a-z][\w.-]+", "shell"),
    (r"^\s*(?:def|import|from)\s", "python"),
    (r"^\s*\[[\w.]+\]\s*$", "toml"),
)
"""Patterns of a text whose suffix does not say its form; the first match counts."""


def _form(text: str, file: str) -> Form:
    if len(text) < _LONGEST_LAYOUT and _LAYOUT.fullmatch(text):
        return "layout"
    if _ARGUMENTS.match(text):
        return "list"
    form = _FORMS.get(Path(file).suffix.lower(), "log")
    if form in ("shell", "log") and _program_in(text):
        return "python"
    if form != "log":
        return form
    return next((form for pattern, form in _FORMS_BY_TEXT if re.search(pattern, text, re.MULTILINE)), "yaml")


def _trainer(text: str, name: str | None) -> TrainerKind:
    if name is not None:
        return trainer_kind(name)
    head = text[:400_000]
    # A comment may name another trainer: it counts only where nothing else does.
    for part in (_COMMENT.sub("", head), head):
        for pattern, trainer in _TRAINERS_BY_TEXT:
            if re.search(pattern, part, re.IGNORECASE | re.MULTILINE):
                return trainer_kind(trainer)
    return OTHER


_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)
"""Matches a comment, alone on its line or behind other text."""


Read = tuple[ReadSettings, tuple[SourceText, ...]]
"""Settings that a reader finds of one configuration, and the further files that it read for them."""


def _of_shell(source: SourceText, kind: TrainerKind, folder: Path | None) -> Iterator[Read]:
    shell = read_in_shell(source.text, source.file, kind.name, folder)
    read, others = shell.read, shell.sourced
    if base := _configuration_of(shell.words, folder):
        own, rest = list[RawEntry](), list[RawEntry]()
        for entry in read.entries:
            (own if "." in entry.key and not entry.place.key.startswith("-") else rest).append(entry)
        for entry in own:
            documents.override(base.tree, entry.key, documents.PlacedValue(entry.raw, entry.place))
        read = ReadSettings(
            entries=(*documents.settings_of(base.tree), *rest),
            whole=read.whole and not base.missing,
            others=(*read.others, *base.missing),
        )
        others += (base.source, *base.files)
    yield read, others


_NAMED_FILE = re.compile(r"--?(?:config|config[-_]file|exp|deepspeed[-_]config|job\.config_file)", re.ASCII)


def _configuration_of(words: Sequence[str], folder: Path | None) -> documents.Extended | None:
    """Return the configuration file that a command names, if it is near: by its path, or by its name as Hydra does."""
    flags: dict[str, str] = {}
    for word, following in zip(words, (*words[1:], ""), strict=False):
        flag, equals, value = word.partition("=")
        flags[flag] = value.strip("\"'") if equals else following
    named = next((value for flag, value in flags.items() if _NAMED_FILE.fullmatch(flag)), "")
    names = [named] if re.search(r"\.(?:ya?ml|toml|json)$", named) else []
    if name := flags.get("--config-name", ""):
        program = flags.get("-m", "").replace(".", "/") or next((word for word in words if word.endswith(".py")), "")
        name = name if name.endswith(".yaml") else f"{name}.yaml"
        beside = normpath(f"{program.rpartition('/')[0] or '.'}/{flags.get('--config-path', 'config')}/{name}")
        names = [beside, f"{flags.get('--config-path', 'config')}/{name}"]
    for name in names:
        source = text_near(name, folder, _FORMS.get(Path(name).suffix.lower(), "yaml"))
        with suppress(FormatError):
            if source is not None:
                return documents.Extended(source, Path(source.file).parent)
    return None


def _of_list(source: SourceText, kind: TrainerKind, folder: Path | None) -> Iterator[Read]:
    """Read a list of arguments as those of a command, which keep their lines and columns."""
    words = re.sub(r"[\[\](),\"']", " ", source.text).replace("\n", " \\\n")
    yield from _of_shell(replace(source, text=words), kind, folder)


def _of_log(source: SourceText, kind: TrainerKind, folder: Path | None) -> Iterator[Read]:
    if entries := documents.printed_arguments(source.text, source.file):
        yield ReadSettings(entries=tuple(entries)), ()
    elif printed := documents.printed_document(source.text, source.file):
        yield from _of_document(printed, kind, None)
    else:
        raise InputError(f"the log {source.file} has no arguments ('------ arguments ------') or configuration")


_PROGRAM = re.compile(r"<<-?[ \t]*(['\"])PYTHON\1[^\n]*\n(.*?)^PYTHON[ \t]*$", re.DOTALL | re.MULTILINE)


def _program_in(text: str) -> re.Match[str] | None:
    """Return the Python program of Megatron-Bridge that a launch script of a plan writes and runs."""
    program = _PROGRAM.search(text)
    return program if program and "megatron.bridge" in program[2] else None


def _of_python(source: SourceText, kind: TrainerKind, folder: Path | None) -> Iterator[Read]:
    if program := _program_in(source.text):
        # What the shell says of the machines, then what the recipe sets, at the lines of the script.
        launcher = source.text.replace(program[2], "\n" * program[2].count("\n"))
        shell = read_in_shell(launcher, source.file, kind.name, folder)
        for recipe in recipes_in("\n" * source.text.count("\n", 0, program.start(2)) + program[2], source.file):
            yield ReadSettings(entries=(*shell.read.entries, *recipe.entries), name=recipe.name), shell.sourced
        return
    for recipe in recipes_in(source.text, source.file, folder):
        files = dict.fromkeys(entry.place.file for entry in recipe.entries)
        helpers = (text_near(Path(file).name, Path(file).parent, "python") for file in files if file != source.file)
        yield recipe, tuple(helper for helper in helpers if helper is not None)


def _of_document(source: SourceText, kind: TrainerKind, folder: Path | None) -> Iterator[Read]:
    extended = documents.Extended(source, folder)
    entries = documents.settings_of(extended.tree)
    entries = [*phase_of((one.key.rpartition(".")[2] for one in entries), "", source.file), *entries]
    others = [entry.place for entry in entries if not is_known(entry.key, kind.name)]
    read = ReadSettings(entries=tuple(entries), whole=not extended.missing, others=(*extended.missing, *others))
    yield read, tuple(extended.files)


def _of_layout(source: SourceText, kind: TrainerKind, folder: Path | None) -> Iterator[Read]:
    place = SettingPlace(source.file, 1, "layout", 0, len(source.text.split("\n")[0]))
    yield ReadSettings(entries=(RawEntry("pipeline_model_parallel_layout", source.text.strip(), place),)), ()


_READERS = {
    "shell": _of_shell,
    "list": _of_list,
    "log": _of_log,
    "python": _of_python,
    "yaml": _of_document,
    "toml": _of_document,
    "json": _of_document,
    "layout": _of_layout,
}
