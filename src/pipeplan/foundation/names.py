"""Built-in names, which editors complete; made by ``python -m docs.build.options --write``.

Functions take any text in place of them: plugins have further names.
"""

from typing import Literal

# fmt: off
ScheduleName = Literal[
    "gpipe", "looped-bfs", "1f1b", "eager-1f1b", "1f1b-overlap", "kfkb", "mario", "interleaved-1f1b", "interleaved-zb",
    "interleaved-1f1b-overlap", "zb-h1", "zb-h2", "zbv", "v-min", "v-half", "dualpipe", "dualpipev", "chimera",
    "bitpipe", "hanayo", "seq1f1b", "slimpipe", "svpp", "mepipe", "zb-auto", "zbv-heuristic"
]
"""Strategies."""

FormatName = Literal[
    "json", "rows", "torch-csv", "torch-csv-comms", "automodel", "megatron", "megatron-bridge", "primus", "torchtitan",
    "torchtitan-python", "timeline-columns", "timeline-csv", "trace", "zb-nodes", "costs"
]
"""Formats of :func:`pipeplan.export`."""

TrainerName = Literal[
    "pytorch", "megatron", "bridge", "torchtitan", "automodel", "primus"
]
"""Trainers of :func:`pipeplan.check`."""
