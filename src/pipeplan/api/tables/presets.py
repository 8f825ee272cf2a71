"""Models and GPUs by name, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from pipeplan.api.planning.presets import Gpus, Models
from pipeplan.api.tables.parts import columns, size


def model_parts(models: Models) -> Iterator[RenderableType]:
    """A row a model."""
    table = columns("model", "layers", "hidden", "heads", "vocabulary", "experts", "trained on", padding=1)
    for each in models:
        experts = "" if each.experts is None else f"{each.experts.count}, top {each.experts.top_k}"
        trained = "" if each.trained_sequence is None else f"{each.trained_sequence:,}"
        numbers = (f"{value:,}" for value in (each.layers, each.hidden, each.heads, each.vocabulary))
        table.add_row(each.name, *numbers, experts, trained)
    yield table
    yield Text("\n'--model' takes these names, or a model hub's config.json")


def gpu_parts(gpus: Gpus) -> Iterator[RenderableType]:
    """A row a GPU, with the node that it usually stands in."""
    table = columns(
        "GPU", "TFLOP/s\n16 bits", "8 bits", "memory", "TB/s", "a node", "GB/s\ninside", "between", padding=1
    )
    for each in gpus:
        gpu, node = each.gpu, each.node
        peaks = (f"{gpu.peak[kind] / 1e12:,.0f}" if kind in gpu.peak else "" for kind in ("bf16", "fp8"))
        links = (f"{link.bandwidth / 1e9:,.0f}" for link in (node.inside, node.between))
        table.add_row(
            gpu.name, *peaks, size(gpu.memory_bytes), f"{gpu.memory_bandwidth / 1e12:.2g}", str(node.per_node), *links
        )
    yield table
    yield Text(
        "\n'--cluster' takes GPU:PER_NODExNODES, such as h100-sxm:8x16, or a file with a GPU and links of one's own"
    )
