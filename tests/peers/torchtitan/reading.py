"""torchtitan's own parser on words of a command line: of the torchtitan that this process imports."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torchtitan
from torchtitan.config import ConfigManager


@dataclass(frozen=True)
class Job:
    """The words of each command line, and the folder that torchtitan must be from, None for any."""

    words: Sequence[tuple[str, ...]]
    source: str | None = None


@dataclass(frozen=True)
class Settings:
    """The fields of ``ParallelismConfig`` and ``TrainingConfig``."""

    parallelism: dict[str, Any]
    training: dict[str, Any]


def main(job: Job) -> list[Settings]:
    """What each command line sets, defaults included."""
    assert job.source is None or Path(torchtitan.__path__[0]).parent.samefile(job.source)
    parsed = []
    for words in job.words:
        config = ConfigManager().parse_args(
            ["--module", "tests.peers.torchtitan.planned", "--config", "planned", *words]
        )
        parsed.append(Settings(asdict(config.parallelism), asdict(config.training)))
    return parsed
