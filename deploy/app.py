"""pipeplan as a Gradio page, for the hosting of a model hub: the same functions and the same timeline as ``pipeplan serve``.

The timeline is a page of its own, with its data in it, in a frame that may do nothing but run its script and download.
"""

from __future__ import annotations

import os
from html import escape
from typing import Any

import gradio as gr

import pipeplan
from pipeplan.drawing.html import html_page
from pipeplan.errors import PipeplanError, ShapeError

MOST_OPS = 100_000
"""Ops that all the schedules of an answer may have together; a hosted machine is small and shared."""

NAMES = [entry.name for entry in pipeplan.schedules()]
FIRST = ["1f1b", "interleaved-1f1b", "zb-h1", "zbv"]
HEADINGS = ["schedule", "chunks", "makespan", "idle / total", "peak activations", "lower bound", "gap"]

_FRAME = (
    '<iframe title="timeline" sandbox="allow-scripts allow-downloads" '
    'style="width:100%;height:640px;border:0" srcdoc="{}"></iframe>'
)


SLIDERS = {
    "ranks": gr.Slider(1, 64, 8, step=1, label="ranks", render=False),
    "microbatches": gr.Slider(1, 256, 24, step=1, label="microbatches", render=False),
    "forward_times": gr.Slider(0.05, 5, 1, step=0.05, label="forward", render=False),
    "backward_input_times": gr.Slider(0.05, 5, 1, step=0.05, label="backward for inputs", render=False),
    "backward_weight_times": gr.Slider(0.05, 5, 1, step=0.05, label="backward for weights", render=False),
    "p2p_time": gr.Slider(0, 2, 0.1, step=0.05, label="transfer", render=False),
}
"""A slider for each of these settings."""


def answer(names: list[str], *values: float) -> tuple[list[list[Any]], str, str]:
    """Rows of the table, the timeline of the best schedule, and what is wrong or worth knowing.

    Parameters
    ----------
    names
        The schedules to compare.
    values
        Of ``SLIDERS``, in their order.
    """
    settings = dict(zip(SLIDERS, values, strict=True))
    ranks, microbatches = int(settings["ranks"]), int(settings["microbatches"])
    try:
        _require_small(ranks, microbatches, names)
        comparison = pipeplan.compare(*names, **settings | {"ranks": ranks, "microbatches": microbatches})
    except PipeplanError as error:
        return [], "", f"**{error}**"
    best = comparison.results[0]
    refused = [f"{name}: {reason}" for name, reason in comparison.refused.items()]
    page = html_page(best.view(reasons=True))
    return [_row(result) for result in comparison], _FRAME.format(escape(page)), "\n\n".join(refused)


def _require_small(ranks: int, microbatches: int, names: list[str]) -> None:
    # Two chunks per rank and three ops for each: nearly every schedule has at most that.
    ops = ranks * microbatches * 6 * (len(names) or len(NAMES))
    if ops > MOST_OPS:
        raise ShapeError(
            f"about {ops:,} ops are too many for this page, whose limit is {MOST_OPS:,}; use 'pipeplan serve'"
        )


def _row(result: pipeplan.Result) -> list[Any]:
    return [
        result.name,
        result.schedule.placement.chunks,
        round(result.makespan, 4),
        f"{result.timeline.bubble.idle_over_total:.1%}",
        round(float(result.memory.peak_activation.max()), 4),
        round(result.bound.value, 4),
        "" if result.gap is None else f"{max(result.gap, 0.0):.1%}",
    ]


def page() -> gr.Blocks:
    """The page: sliders on the left, and everything else follows them."""
    with gr.Blocks(title="pipeplan", analytics_enabled=False) as blocks:
        gr.Markdown("# pipeplan\nPipeline-parallel training schedules, side by side.")
        with gr.Row():
            with gr.Column(scale=1):
                for slider in SLIDERS.values():
                    slider.render()
                names = gr.CheckboxGroup(NAMES, value=FIRST, label="schedules")
            with gr.Column(scale=3):
                shown = [gr.Dataframe(headers=HEADINGS, interactive=False), gr.HTML(), gr.Markdown()]
        asked = [names, *SLIDERS.values()]
        events = [blocks.load, *(field.change for field in asked)]
        gr.on(events, answer, asked, shown, trigger_mode="always_last", show_progress="hidden", concurrency_limit=2)
    return blocks


if __name__ == "__main__":
    page().queue(max_size=32).launch(
        server_name=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"),
        max_file_size="1mb",
        show_error=False,
    )
