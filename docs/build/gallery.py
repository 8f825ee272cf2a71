"""The gallery: every strategy in one shape, beside each other."""

from __future__ import annotations

from collections.abc import Iterator

import pipeplan
from docs.build import strategies
from pipeplan.foundation.readable import percent
from pipeplan.strategies import STRATEGIES

PAGE = """# Gallery

All strategies on {ranks} ranks with {microbatches} microbatches, drawn by `pipeplan simulate NAME -p {ranks} -m
{microbatches} -o NAME.svg --size column` when this page was built. Forward, input and weight backward take 1 of a
rank's time each, transfers nothing.

<div class="gallery" markdown>
{items}
</div>
"""

ITEM = """
<figure markdown>
![{name}](gallery/{name}-light.svg#only-light){{ loading=lazy }}
![{name}](gallery/{name}-dark.svg#only-dark){{ loading=lazy }}
<figcaption markdown>[{name}](strategies/{name}.md): {title}; {idle} idle</figcaption>
</figure>
"""


def pages() -> Iterator[tuple[str, str | bytes]]:
    """The path and the content of the page and of its pictures."""
    items = "".join(
        ITEM.format(name=found.name, title=found.title, idle=percent(_idle(found.name)))
        for found in STRATEGIES.values()
    )
    text = PAGE.format(ranks=strategies.RANKS, microbatches=strategies.MICROBATCHES, items=items)
    yield "reference/gallery.md", text
    for name in STRATEGIES:
        for theme in strategies.THEMES:
            yield f"reference/gallery/{name}-{theme}.svg", strategies.picture(name, theme, "column")


def _idle(name: str) -> float:
    result = pipeplan.simulate(name, ranks=strategies.RANKS, microbatches=strategies.MICROBATCHES)
    return result.timeline.bubble.idle_over_total
