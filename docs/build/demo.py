"""The page to play with: comparisons of the published schedules over shapes and costs, computed when the site is built.

``python -m docs.build.demo FOLDER`` writes it alone; ``index.html`` there opens from the file system too, so what is loaded
when somebody chooses other costs are scripts that call a function. The page itself is ``web_ui/src/demo``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pipeplan
from pipeplan.answers import load_config
from pipeplan.answers.comparing.comparison import comparison_facts
from pipeplan.answers.simulating.result import view_of_result
from pipeplan.drawing.html import archived, asset, themes_for
from pipeplan.foundation.files import write_text

ROOT = Path(__file__).parents[2]
PROFILES = ROOT / "examples" / "profiles"
BUILT = ROOT / "docs" / "demo"
"""What ``web_ui`` builds for the page."""

SHAPES = ((4, 8), (4, 16), (8, 16), (8, 32), (8, 64), (16, 32))
"""Ranks and microbatches."""

OPTIONS = {
    "forward_times": "--forward-times",
    "backward_input_times": "--backward-input-times",
    "backward_weight_times": "--backward-weight-times",
    "p2p_time": "--p2p-time",
    "time_unit": "--time-unit",
    "activation_bytes": "--activation-bytes",
    "weight_activation_bytes": "--weight-activation-bytes",
}
"""How the command line calls what the costs consist of."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """How long a message takes, as a multiple of what the costs say."""

    key: str
    title: str
    factor: float


TRANSFERS = (
    Transfer("given", "as in the costs", 1),
    Transfer("none", "none", 0),
    Transfer("slow", "ten times as long", 10),
)


@dataclass(frozen=True, slots=True)
class Preset:
    """Costs of a rank, by the names of the settings, and where they come from."""

    key: str
    title: str
    origin: str
    settings: dict[str, Any]

    def with_transfer(self, transfer: Transfer) -> dict[str, Any]:
        """The settings where messages take so long."""
        return {**self.settings, "p2p_time": self.settings["p2p_time"] * transfer.factor}


def presets() -> tuple[Preset, ...]:
    """The costs to choose from."""
    even = {"forward_times": 1, "backward_input_times": 1, "backward_weight_times": 1, "p2p_time": 0.125}
    return (
        *(_measured(name) for name in ("gpt-6.2b-24", "gpt-1.5b-24")),
        Preset("even", "forward 1, backward 1 + 1, as in papers", "Made up: every part takes the same.", even),
    )


def _measured(file: str) -> Preset:
    settings = load_config(PROFILES / f"{file}.yaml").settings
    key = file.rpartition("-")[0]
    return Preset(
        key=key,
        title=f"GPT with {key.removeprefix('gpt-').upper()} parameters, A100",
        origin=(
            f"A rank takes what it took in a run on {settings['ranks']} ranks, measured by Qi et al. "
            "(Zero Bubble Pipeline Parallelism, ICLR 2024, table 6)."
        ),
        settings={name: settings[name] for name in OPTIONS},
    )


def pages() -> Iterator[tuple[str, str]]:
    """The path in the site's sources, and the content, of each file that is not among them."""
    yield "demo/index.html", _index()
    yield "demo/timeline.js", asset("timeline.js")
    yield "demo/timeline.css", asset("timeline.css")
    for (ranks, microbatches), preset, transfer in product(SHAPES, presets(), TRANSFERS):
        key = f"{ranks}x{microbatches}-{preset.key}-{transfer.key}"
        data = json.dumps(_compared(ranks, microbatches, preset.with_transfer(transfer)), separators=(",", ":"))
        yield f"demo/data/{key}.js", f"pipeplanDemo({json.dumps(key)},{data})\n"


def _compared(ranks: int, microbatches: int, settings: dict[str, Any]) -> dict[str, Any]:
    """The comparison of all schedules: what its page says, and the timelines."""
    comparison = pipeplan.compare(ranks=ranks, microbatches=microbatches, **settings)
    views = [view_of_result(result, reasons=True) for result in comparison]
    return {
        "facts": comparison_facts(comparison).to_dict(),
        "views": [archived(view) for view in views],
        "themes": themes_for(views),
    }


def _index() -> str:
    choices = {
        "shapes": SHAPES,
        "presets": [
            {"key": each.key, "title": each.title, "origin": each.origin, "options": _options(each)}
            for each in presets()
        ],
        "transfers": [{"key": each.key, "title": each.title, "factor": each.factor} for each in TRANSFERS],
        "version": pipeplan.__version__,
    }
    data = json.dumps(choices).replace("<", "\\u003c")
    return (ROOT / "docs" / "build" / "demo.html").read_text("utf-8").replace("$CHOICES", data)


def _options(preset: Preset) -> list[list[Any]]:
    """The options of a command line that give its costs, each with its value."""
    return [[OPTIONS[name], value] for name, value in preset.settings.items()]


def write(folder: Path) -> None:
    """Write the page and all that it loads.

    Raises
    ------
    InputError
        Where a file cannot be written.
    """
    built = [(f"demo/{path.name}", path.read_text("utf-8")) for path in sorted(BUILT.iterdir())]
    for path, content in [*built, *pages()]:
        target = folder / Path(path).relative_to("demo")
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, content)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
