"""Text of a configuration with its form, and the settings that were read from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path
from typing import Literal

from pipeplan.extensions.review.facts import ReviewFacts, SettingPlace
from pipeplan.extensions.review.stated import RawEntry
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.files import MEBIBYTE, read_text

Form = Literal["shell", "yaml", "toml", "json", "python", "log", "layout", "list"]


@dataclass(frozen=True, slots=True)
class SourceText:
    """Text of a file, and the form in which a patch changes it."""

    file: str
    text: str
    form: Form


@dataclass(frozen=True, slots=True)
class Reading:
    """Configuration that was read, and its source.

    Attributes
    ----------
    others
        Further files that it names: sourced scripts, base configurations.
    folder
        Folder of the files that it names; None: they are not read.
    """

    facts: ReviewFacts
    source: SourceText
    others: tuple[SourceText, ...] = ()
    folder: Path | None = None


OTHER_JOBS = frozenset(
    {"rollout", "ref", "critic", "reward", "reward_model", "teacher", "draft", "eval"}
    | {"vllm", "vllm_cfg", "vllm_kwargs", "sglang", "sglang_cfg", "trtllm_cfg", "engine_kwargs"}
)
"""Groups of keys that configure another job or another model than the training one."""

_MOST_ABOVE = 6
"""Number of folders above a file that may belong to its repository."""


def text_near(name: str, folder: Path | None, form: Form) -> SourceText | None:
    """Return a file that a configuration names: beside it, or in the repository above it; None if there is none.

    Of an absolute path, which holds on the machine that trains, the last parts count.
    """
    name = name.rpartition("\0")[2]
    if folder is None or not name.strip("./") or len(name) > _LONGEST_PATH:
        return None
    for path in _paths_near(name, folder):
        try:
            if path.is_file():
                return SourceText(str(path), read_text(path, limit=MEBIBYTE, what="configuration"), form)
        except (OSError, ValueError, PipeplanError):
            continue
    return None


_LONGEST_PATH = 500


def _paths_near(name: str, folder: Path) -> Iterator[Path]:
    above: list[Path] = []
    for path in [folder.resolve(), *folder.resolve().parents][:_MOST_ABOVE]:
        above.append(path)
        if (path / ".git").exists():
            break
    parts = Path(name).parts
    # Of an absolute path, all parts are tried below the repository.
    parts = parts[1:] if parts[0] == "/" else parts
    steps = max(1, len(parts) - 1)
    for first in range(steps):
        for up in range(len(above)):
            path = Path(normpath(folder.joinpath(*[".."] * up, *parts[first:])))
            if path.resolve().is_relative_to(above[-1]):
                yield path


_GENERATES = frozenset({"num-tokens-to-generate", "inference-max-requests", "max-tokens-to-generate"})
"""Arguments of jobs that generate text and do not train."""

_SERVERS = re.compile(
    r"^vllm |vllm\.entrypoints|sglang\.launch_server|text_generation_server|trtllm-|convert_checkpoint"
    r"|\b(?:inference|evaluation)\.py\b"
)
"""Matches programs that generate text, and that convert checkpoints for it."""


def phase_of(words: Iterable[str], command: str, file: str) -> list[RawEntry]:
    """Return the phase of a job that does not train by its words or keys, and by its command; empty for others."""
    names = {word.lstrip("-").replace("_", "-") for word in words}
    phase = "export" if command.startswith("megatron export ") else "inference" if _SERVERS.search(command) else ""
    if names & _GENERATES and not any("train-iters" in name for name in names):
        phase = phase or "inference"
    return [RawEntry("phase", phase, SettingPlace(file))] if phase else []
