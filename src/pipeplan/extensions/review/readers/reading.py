"""From a file to the configurations in it: which form it has, which trainer it is for, and its settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeplan.extensions.planning.flags import is_configuration
from pipeplan.extensions.review.facts import Entry, ReviewFacts, SettingPlace
from pipeplan.extensions.review.readers.documents import ARGUMENTS, read_in_document, read_in_lines, read_in_log
from pipeplan.extensions.review.readers.own import configuration_in, read_own
from pipeplan.extensions.review.readers.recipes import recipes_in
from pipeplan.extensions.review.readers.shell import read_in_shell
from pipeplan.extensions.review.readers.source import Form, Reading, SourceText, configured_by
from pipeplan.extensions.review.stated import ReadSettings, facts_of
from pipeplan.foundation.documents import read_yaml
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
    (r"nemo_automodel|\bautomodel\b", "nemo-automodel"),
    (r"megatron[._]bridge|AutoBridge|ConfigContainer", "megatron-bridge"),
    (r"\bmegatron (?:sft|pt|rlhf)\b|\bswift\b", "ms-swift"),
    (r"\bprimus\b|^\s*pre_trainer:", "primus"),
    (r"nemo_run|from nemo|nemo\.collections|nemo\.lightning|^\s*trainer\.strategy\.", "nemo"),
    (r"nemo_rl|grpo:\s*$|megatron_cfg:", "nemo-rl"),
    (r"actor_rollout_ref|\bverl\b", "verl"),
    (r"openrlhf", "openrlhf"),
    (r"MEGATRON_PATCH_PATH|pai[-_]megatron", "pai-megatron-patch"),
    (r"mindspeed|--num-layer-list|--noop-layers", "mindspeed"),
    (r"\bslime\b|SLIME_|--actor-num-gpus-per-node", "slime"),
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
    readings = tuple(Reading(facts, source) for facts in _READERS[form](source, kind, release))
    readings = tuple(
        reading for reading in readings if any(not entry.assumed for entry in reading.facts.settings.values())
    )
    if not readings:
        raise InputError(
            f"{file} has no setting of parallel training that a review knows: expected arguments of a trainer, a recipe "
            "or a layout"
        )
    return readings


def _own(source: SourceText) -> Mapping[str, Any] | None:
    """Return pipeplan's own configuration that a text is, or that its commands write; None if it has none."""
    if source.form == "shell":
        return configuration_in(source.text)
    document = _parsed(source) if source.form in ("yaml", "toml", "json") else None
    if isinstance(document, Mapping) and isinstance(best := document.get("best"), Mapping):
        # A plan's answer as JSON.
        document = best.get("document")
    return document if is_configuration(document) else None


_ARGUMENTS = re.compile(r"""(["'])--[a-z][\w.-]*(?:=[^"'\n]*)?\1\s*(?:,|\])""")
"""Matches an argument of a command that is written as a list: ``["--num-layers", "46"]``."""

_FORMS_BY_TEXT: tuple[tuple[str, Form], ...] = (
    (r"\A\s*Namespace\(", "python"),
    (ARGUMENTS.pattern, "log"),
    (r"\A\s*(?:\{|\[\s*\{)", "json"),
    (r"(?:^|\s)--[a-z][\w.-]+", "shell"),
    (r"^\s*(?:def|import|from)\s", "python"),
    (r"^\s*\[[\w.]+\]\s*$", "toml"),
)
"""Patterns of a text whose suffix does not say its form; the first match counts."""


def _form(text: str, file: str) -> Form:
    if len(text) < _LONGEST_LAYOUT and _LAYOUT.fullmatch(text):
        return "layout"
    if text.lstrip()[:1] == "[" and _ARGUMENTS.search(text):
        return "list"
    form = _FORMS.get(Path(file).suffix.lower(), "log")
    if form in ("shell", "log") and _program_in(text, file):
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


_COMMENT = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)
"""Matches a line with a comment alone."""


def _of_shell(source: SourceText, kind: TrainerKind, release: str) -> Iterator[ReviewFacts]:
    entries, whole = read_in_shell(source.text, source.file)
    yield facts_of(ReadSettings(entries=tuple(entries), whole=whole), kind, release=release)


def _of_list(source: SourceText, kind: TrainerKind, release: str) -> Iterator[ReviewFacts]:
    """Read the arguments of a command that is written as a list; all of them keep their line and columns."""
    words = re.sub(r"[\[\](),\"']", " ", source.text).replace("\n", " \\\n")
    yield from _of_shell(SourceText(source.file, words, source.form), kind, release)


def _of_log(source: SourceText, kind: TrainerKind, release: str) -> Iterator[ReviewFacts]:
    entries = read_in_log(source.text, source.file)
    if not entries:
        raise InputError(f"the log {source.file} has no block of arguments ('------ arguments ------')")
    if kind is OTHER:
        kind = trainer_kind("megatron-lm")
    yield facts_of(ReadSettings(entries=tuple(entries)), kind, release=release)


_DOCUMENT = re.compile(r"<<-?[ \t]*(['\"])(\w+)\1[^\n]*\n(.*?)^\2[ \t]*$", re.DOTALL | re.MULTILINE)
"""Matches a document of a script that its shell leaves as it is."""


def _program_in(text: str, file: str) -> str:
    """Return the Python program that a launch script writes and runs, at the same lines; empty if it holds no recipe."""
    if text.lstrip().startswith(("import ", "from ", '"""')):
        return ""
    for document in _DOCUMENT.finditer(text):
        program = "\n" * text.count("\n", 0, document.start(3)) + document[3]
        try:
            if recipes_in(program, file):
                return program
        except FormatError:
            continue
    return ""


def _of_launched(source: SourceText, program: str, kind: TrainerKind, release: str) -> Iterator[ReviewFacts]:
    """Read a launch script that writes its recipe: what the shell says of the machines, then what the recipe sets."""
    launcher = _DOCUMENT.sub(lambda document: re.sub(r"[^\n]", "", document[0]), source.text)
    shell, _ = read_in_shell(launcher, source.file)
    for recipe in recipes_in(program, source.file):
        yield facts_of(ReadSettings(entries=(*shell, *recipe.entries), name=recipe.name), kind, release=release)


def _of_python(source: SourceText, kind: TrainerKind, release: str) -> Iterator[ReviewFacts]:
    if program := _program_in(source.text, source.file):
        yield from _of_launched(source, program, kind, release)
        return
    recipes = recipes_in(source.text, source.file)
    if not recipes and _ARGUMENTS.search(source.text):
        yield from _of_list(source, kind, release)
    for recipe in recipes:
        named = (
            []
            if any(one.key == "model_name" for one in recipe.entries)
            else configured_by(recipe.name, SettingPlace(source.file, 0, "the recipe's name"))
        )
        yield facts_of(ReadSettings(entries=(*named, *recipe.entries), name=recipe.name), kind, release=release)


def _of_document(source: SourceText, kind: TrainerKind, release: str) -> Iterator[ReviewFacts]:
    document = _parsed(source)
    if document is None:
        entries = read_in_lines(source.text, source.file)
        yield facts_of(ReadSettings(entries=tuple(entries), whole=True), kind, release=release)
        return
    entries = read_in_document(document, source.text, source.file)
    yield facts_of(ReadSettings(entries=tuple(entries), whole=True), kind, release=release)


def _parsed(source: SourceText) -> Any:
    """Return a document as plain values; None for YAML that only lenient loaders take."""
    try:
        if source.form == "json":
            return json.loads(source.text)
        if source.form == "toml":
            import tomllib

            return tomllib.loads(source.text)
        return read_yaml(source.text)
    except (ValueError, RecursionError) as error:
        if source.form == "yaml" and re.match(r"duplicate key|YAML merge keys", str(error)):
            # Trainers' own loaders take the last of several equal keys, and merge groups.
            return None
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise FormatError(f"invalid {source.form.upper()} in {source.file}: {reason[:300]}") from None


def _of_layout(source: SourceText, kind: TrainerKind, release: str) -> Iterator[ReviewFacts]:
    layout = Entry(source.text.strip(), SettingPlace(source.file, 1, "layout", 0, len(source.text.split("\n")[0])))
    yield ReviewFacts(trainer_kind("megatron-lm") if kind is OTHER else kind, {"layout": layout}, release)


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
