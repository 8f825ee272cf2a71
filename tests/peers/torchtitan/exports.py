"""What we export, as torchtitan takes it."""

import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pipeplan.formats import Training
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import Schedule, needs_of
from pipeplan.strategies import STRATEGIES
from pipeplan.trainers.torchtitan import torchtitan_flags, torchtitan_python
from tests.peers.shell import NUMBERS, launched

BARE = Training()
PLACEMENTS = ("linear", "loop", "v")
"""Those that torchtitan builds."""


@dataclass(frozen=True, slots=True)
class Case:
    """A schedule with the layers of its stages; None leaves them to torchtitan."""

    schedule: Schedule
    layers: tuple[int, ...] | None
    microbatch_size: int = 1


def published(ranks: int, microbatches: int, chunks: int | None = None) -> Iterator[Schedule]:
    """Every schedule of this shape that torchtitan can build; those of one number of chunks only without ``chunks``."""
    for strategy in STRATEGIES.values():
        try:
            schedule = strategy(strategy.shape(ranks, microbatches, chunks))
        except ShapeError:
            continue
        if schedule.placement.name in PLACEMENTS and not needs_of(schedule):
            yield schedule


def layout(stages: int, layers: int, draw: random.Random) -> tuple[int, ...]:
    """``layers`` dealt to the stages: one to each between the first and the last, the others anywhere."""
    shares = [0, *([1] * (stages - 2)), 0]
    for _ in range(layers - (stages - 2)):
        shares[draw.randrange(stages)] += 1
    return tuple(shares)


WRITERS = {"torchtitan": torchtitan_flags, "torchtitan-python": torchtitan_python}


def exported(case: Case, folder: Path, name: str = "plan", to: str = "torchtitan", training: Training = BARE) -> str:
    """The text of an export, its CSV written into a folder."""
    said = replace(training, layers=case.layers, microbatch_size=case.microbatch_size, csv=str(folder / f"{name}.csv"))
    export = WRITERS[to](case.schedule, said)
    for path, text in export.files.items():
        Path(path).write_text(text)
    return export.text


PLANNED = {**NUMBERS, "MODULE": "tests.peers.torchtitan.planned", "CONFIG": "planned"}
"""What a user sets who trains with the config of this name."""


def words_of_plan(text: str) -> tuple[str, ...]:
    """The words that a plan's script gives torchtitan."""
    return launched(text, PLANNED).after("torchtitan.train")


def words(text: str) -> tuple[str, ...]:
    """The flags as bash hands them to torchtitan."""
    script = f"{text}printf '%s\\0' \"${{TORCHTITAN_ARGS[@]}}\""
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    return tuple(done.stdout.decode().split("\0")[:-1])
