"""Registry of trainers: every module of this package that declares ``TRAINER`` is a trainer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pkgutil import iter_modules

from pipeplan.costs import Layer, Settings
from pipeplan.formats import Training, formats
from pipeplan.foundation.errors import InputError, PipeplanError, UnknownNameError
from pipeplan.foundation.registry import Registry
from pipeplan.model import Schedule, one_line, shortened
from pipeplan.trainers.layout import LONGEST, TrainerLayout
from pipeplan.trainers.trainer import TRAINER_KINDS, Trainer

_FIRST = ("megatron", "bridge", "torchtitan")

_OWN = Trainer(name="pipeplan", title="pipeplan", software="megatron-core")
"""pipeplan as a trainer: its own command simulates a plan's pipeline with the planned stage costs."""


def _built_in() -> list[Trainer]:
    package = import_module(__package__)
    files = [module.name for module in iter_modules(package.__path__)]
    order = sorted(files, key=lambda file: (_FIRST.index(file) if file in _FIRST else len(_FIRST), file))
    modules = (import_module(f"{package.__name__}.{file}") for file in order)
    return [*(module.TRAINER for module in modules if hasattr(module, "TRAINER")), _OWN]


TRAINERS = Registry(
    "pipeplan.trainers", Trainer, "trainer", _built_in, names=lambda trainer: (trainer.name, *trainer.aliases)
)
"""Every trainer by its name: those of pipeplan, then registered ones and plugins."""

_PYTORCH = "pytorch"
"""Name of PyTorch's own runtime, which runs the CSV of a schedule and has no flags."""


def runners() -> tuple[str, ...]:
    """Return the names of all trainers that a schedule can be written for."""
    return (_PYTORCH, *(name for name, trainer in TRAINERS.items() if trainer.formats))


@dataclass(frozen=True, slots=True)
class TrainerVerdict:
    """Verdict whether a trainer can run a schedule; ``reason`` is empty if it can."""

    trainer: str
    format: str
    reason: str = ""

    @property
    def runs(self) -> bool:
        """True if the trainer can run the schedule."""
        return not self.reason


def layout_trainers() -> tuple[str, ...]:
    """Return the trainers that have a text for a layout."""
    return tuple(name for name, trainer in TRAINERS.items() if trainer.write_layout is not None)


def read_layout(text: str) -> TrainerLayout:
    """Return the layout in a trainer's text, or in numbers of layers such as ``9+10+10+9``.

    Raises
    ------
    InputError
        If the text is no trainer's layout, or an invalid one.
    ShapeError
        If flags do not divide the layers.
    """
    layout = find_layout(text)
    if layout is None:
        raise InputError(
            f"unknown layout '{one_line(shortened(text.strip(), 60))}': expected one of Megatron-LM (Et*3|t*4|t*3L), of "
            'Megatron-Bridge ([["embedding", "decoder"], ["decoder", "loss"]]), of torchtitan (tok_embeddings,layers.0 '
            "layers.1,norm,lm_head), or layers of each stage (3+4+3)",
            field="layers",
        )
    return layout


def find_layout(text: str) -> TrainerLayout | None:
    """Return the layout in a text as :func:`read_layout` does; None for a text that is not meant as a layout."""
    if len(text) > LONGEST:
        raise InputError(f"the layout is longer than {LONGEST:,} characters", field="layers")
    words = re.split(r"[\s+|,]+", text.strip())
    if all(re.fullmatch(r"\d{1,6}", word) for word in words) and any(map(int, words)):
        return TrainerLayout(layers=tuple(map(int, words)))
    # Megatron-LM comes last: its flags and keys have names that Megatron-Bridge uses, too.
    for trainer in reversed([*TRAINERS.values()]):
        if trainer.parse_layout is not None and re.search(trainer.layout_mark, text, re.MULTILINE):
            return trainer.parse_layout(text)
    return None


def write_layout(layout: TrainerLayout, to: str) -> str:
    """Return the text of a layout for one of :func:`layout_trainers`.

    Raises
    ------
    UnknownNameError
        If the trainer has no text for layouts.
    ShapeError
        If it cannot run the layout.
    """
    trainer = TRAINERS.find(to)
    write = None if trainer is None else trainer.write_layout
    if write is None:
        raise UnknownNameError("trainer with layouts", to, layout_trainers(), field="to")
    return write(layout)


def with_stage_layers(settings: Settings) -> Settings:
    """Return settings with the numbers of layers of a layout's text, if costs per layer need them."""
    text = settings.layers_per_stage
    if settings.layers is None or not isinstance(text, str) or text == "auto":
        return settings
    return replace(settings, layers_per_stage=_counts(read_layout(text), settings.layers))


def _counts(layout: TrainerLayout, layers: Sequence[Layer]) -> tuple[int, ...]:
    """Return how many of the layers with costs each stage has; embedding, prediction layers and head may be among them."""
    total, blocks = sum(layer.count for layer in layers), sum(layout.layers)
    mtp = layout.mtp_layers if total - blocks >= layout.mtp_layers else 0
    ends = total - blocks - mtp
    first, last = _differs(layers, 0, 1), _differs(layers, -1, -2)
    if not 0 <= ends <= 2 or (ends and ends != first + last):
        raise InputError(
            f"the layout has {blocks} transformer layers, which are not the {total} layers with costs less an embedding and "
            "a head at the ends: write numbers of layers instead",
            field="layers_per_stage",
        )
    head = ends > 0 and last
    counts = [
        layers_of_stage + (further if mtp else 0)
        for layers_of_stage, further in zip(layout.layers, layout.mtp_of_stages, strict=True)
    ]
    counts[0] += ends - head
    counts[-1] += head
    return tuple(counts)


def _differs(layers: Sequence[Layer], place: int, other: int) -> bool:
    """Return True if one of several layers alone has other costs than another one."""
    return len(layers) > 1 and layers[place].count == 1 and layers[place] != replace(layers[other], count=1)


def trainers_of(schedule: Schedule) -> tuple[TrainerVerdict, ...]:
    """Return, for each of :func:`runners`, whether it can run the schedule and, if not, why."""
    return tuple(_verdict(name, schedule) for name in runners())


def refusal(name: str, schedule: Schedule) -> str:
    """Return why one of :func:`runners` cannot run a schedule, in one line; empty if it can.

    Raises UnknownNameError for any other name, and InputError for a trainer that takes no schedules.
    """
    if name != _PYTORCH and ((trainer := TRAINERS.find(name)) is None or not trainer.formats):
        kind = next((kind for kind in TRAINER_KINDS if name.lower() in kind.names), None)
        if kind is not None:
            raise InputError(
                f"a schedule cannot be written for {kind.title}: expected one of {', '.join(runners())}",
                field="trainer",
            )
        raise UnknownNameError("trainer", name, runners(), field="trainer")
    return _verdict(name, schedule).reason


def _verdict(name: str, schedule: Schedule) -> TrainerVerdict:
    if name == _PYTORCH:
        title, chosen = "PyTorch", formats()["torch-csv-comms"]
    else:
        trainer = TRAINERS.required(name)
        title, chosen = trainer.title, trainer.formats[0]
    try:
        if chosen.write_settings is not None:
            chosen.write_settings(schedule, Training())
        elif chosen.write_schedule is not None:
            chosen.write_schedule(schedule)
    except PipeplanError as error:
        return TrainerVerdict(title, chosen.name, str(error).partition("\n")[0])
    return TrainerVerdict(title, chosen.name)
