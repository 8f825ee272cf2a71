"""A page for each strategy: its picture, idea and timing table, formulas, what it makes of usual shapes, its paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pipeplan
from pipeplan.answers import fixed_chunks
from pipeplan.foundation.readable import percent
from pipeplan.strategies import STRATEGIES, Strategy

FOLDER = "reference/strategies/"
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
RANKS, MICROBATCHES = 4, 8
SHAPES = ((4, 8), (4, 32), (8, 16), (8, 64))
"""Ranks and microbatches of the table on every page."""

INTRODUCTION = """# Strategies

Every schedule that has a name, {count} of them, each made by its published rule for any shape that the rule takes. A
name is what `pipeplan simulate NAME`, `compare`, `explain`, `export` and `run` take; `pipeplan compare` takes all
that fit.

Idle time of the worst rank is in forwards of one rank, where forward, input and weight backward take the same; memory
is in *activations*: 1 is what all the chunks of a rank hold for one microbatch. p ranks, m microbatches, v chunks a
rank; F, B, I and W are the times of forward, full, input and weight backward. [The gallery](../gallery.md) shows all
of them in one shape.

{table}

`zb-auto` and `zbv-heuristic` look at costs and memory limits, too.
"""

PAGE = """# {name}

{title}.

![{name} on {ranks} ranks with {microbatches} microbatches]({name}-light.svg#only-light)
![{name} on {ranks} ranks with {microbatches} microbatches]({name}-dark.svg#only-dark)

{facts}

## How it works

{idea}

## What it comes to

Forward, input backward and weight backward take 1 of a rank's time each, transfers nothing. The bound is on every
schedule of the same placement; memory is in activations.

{timing}

## Try it

```shell
pipeplan simulate {name} -p {ranks} -m {microbatches} -o {name}.html
pipeplan explain {name} -p {ranks} -m {microbatches} --p2p-time 0.1
```
"""


def names() -> list[str]:
    """The strategies, in the order of ``pipeplan list schedules``."""
    return list(STRATEGIES)


def pages() -> Iterator[tuple[str, str | bytes]]:
    """The path and the content of each page and each picture."""
    yield f"{FOLDER}index.md", INTRODUCTION.format(count=len(STRATEGIES), table=table())
    for found in STRATEGIES.values():
        yield f"{FOLDER}{found.name}.md", _page(found)
        for theme in THEMES:
            yield f"{FOLDER}{found.name}-{theme}.svg", picture(found.name, theme, "page")


def table() -> str:
    """All strategies with their formulas, a row each."""
    rows = ["| strategy | placement | shapes | idle time | peak memory | paper |", "|---|---|---|---|---|---|"]
    for found in STRATEGIES.values():
        cells = (found.placement, found.shapes, found.bubble.text, found.memory.text, _linked(found.paper))
        rows.append(f"| [`{found.name}`]({found.name}.md): {found.title} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


@cache
def picture(name: str, theme: Literal["light", "dark"], size: Literal["page", "column"]) -> bytes:
    """A strategy on four ranks with eight microbatches, as SVG."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "picture.svg"
        pipeplan.simulate(name, ranks=RANKS, microbatches=MICROBATCHES).save(path, theme=theme, size=size)
        return path.read_bytes()


def _page(found: Strategy) -> str:
    fixed = fixed_chunks(found)
    rows = [
        ("placement", found.placement),
        ("chunks per rank", f"{found.chunks}, or any other number" if fixed is None else str(fixed)),
        ("shapes", found.shapes),
        ("idle time of the worst rank", found.bubble.text),
        ("peak memory, in activations", found.memory.text),
        ("variants", ", ".join(f"`{each}`" for each in found.variants)),
        ("also called", ", ".join(f"`{each}`" for each in found.aliases)),
        ("paper", _linked(found.paper)),
    ]
    facts = "\n".join(f"{word}\n:   {value}\n" for word, value in rows if value)
    return PAGE.format(
        name=found.name,
        title=found.title[:1].upper() + found.title[1:],
        ranks=RANKS,
        microbatches=MICROBATCHES,
        facts=facts,
        idea=idea(found),
        timing=timing(found.name),
    )


def idea(found: Strategy) -> str:
    """Return its idea and its timing table, without the sections of a docstring."""
    return re.split(r"\n\w+\n-{3,}\n", found.idea)[0].replace("::\n", ":\n")


def timing(name: str) -> str:
    """What it comes to on usual shapes, a row each."""
    names = ("ranks", "microbatches", "makespan", "bound", "idle of all time", "peak memory")
    lines = ["| " + " | ".join(names) + " |", "|" + "---:|" * len(names)]
    for ranks, microbatches in SHAPES:
        result = pipeplan.simulate(name, ranks=ranks, microbatches=microbatches)
        record = result.to_dict()
        cells = (
            str(ranks),
            str(microbatches),
            f"{result.makespan:g}",
            f"{record['lower_bound']:g}",
            percent(record["bubble"]["idle_over_total"]),
            f"{max(record['peak_activation']):g}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _linked(paper: str) -> str:
    """Every paper of arXiv that is named, as a link to it."""
    return re.sub(r"arXiv[: ](\d{4}\.\d{5})", r"[arXiv:\1](https://arxiv.org/abs/\1)", paper)
