"""``docs/reference/hardware.md``: its example runs, and its tables are the code's.

``python -m tests.extensions.planning.hardware.test_page`` writes the tables anew.
"""

from __future__ import annotations

import re
from pathlib import Path

from pipeplan.extensions.planning import read_calibration
from pipeplan.extensions.planning.hardware import PRESETS, Preset, cluster
from pipeplan.extensions.planning.hardware.efficiency import GENERATIONS, Attention, Generation
from tests.generated_tables import with_tables, write_tables

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "hardware.md"


def table(headings: str, rows: list[list[str]]) -> str:
    names = headings.split(" | ")
    return "".join(f"|{'|'.join(line)}|\n" for line in [names, ["---"] * len(names), *rows])


def gpu_row(preset: Preset) -> list[str]:
    card, node = preset.gpu, preset.node
    peaks = " / ".join(f"{card.peak[form] / 1e12:,.0f}" for form in ("bf16", "fp8", "fp4") if form in card.peak)
    links = " / ".join(f"{link.bandwidth / 1e9:,.4g}" for link in (node.inside, node.between))
    domain = f"{node.per_node}, NVLink {node.domain}" if node.domain else str(node.per_node)
    memory = f"{card.memory_bytes / 1e9:,.0f} GB, {card.memory_bandwidth / 1e12:.3g} TB/s"
    return [f"`{card.name}`", peaks, memory, domain, links, f"{card.sustained:.2f}", card.generation]


def constants_row(name: str, kernels: Generation) -> list[str]:
    def core(attention: Attention) -> str:
        return f"{attention.reach:.2f}, {attention.half_keys:.0f}, {attention.half_dim:.0f}, {attention.block}"

    products = ", ".join(f"{form} {reach:.2f}" for form, reach in kernels.gemm.items())
    factors = f"{kernels.accumulating:.2f}, {kernels.grouped:.2f}"
    waves = f"{kernels.fill:.0f}, {kernels.quantised:.1f}"
    passes = f"{kernels.memory:.2f}, {kernels.kernel * 1e6:.1f} us"
    return [name, products, factors, waves, core(kernels.forward), core(kernels.backward), passes]


TABLES = {
    "gpus": lambda: table(
        "GPU | TFLOP/s in 16 / 8 / 4 bits | memory | a node | GB/s inside / between, one way | sustained | generation",
        [gpu_row(item) for item in PRESETS.values()],
    ),
    "constants": lambda: table(
        "generation | products reach | times: into 32 bits, grouped | `fill`, partial waves lost | attention: `reach`, "
        "`half_keys`, `half_dim`, `block` | backward | passes reach, a kernel takes",
        [constants_row(name, item) for name, item in GENERATIONS.items()],
    ),
}


def test_the_tables_are_current():
    assert PAGE.read_text() == with_tables(PAGE.read_text(), TABLES)


def test_the_files_on_the_page_are_read(tmp_path):
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (path := tmp_path / "cluster.yaml").write_text(next(block for block in blocks if "per_node" in block))
    assert (cluster(path).gpus, cluster(path).between.bandwidth) == (128, 25e9)
    (path := tmp_path / "calibration.yaml").write_text(next(block for block in blocks if "factors" in block))
    assert read_calibration(path).factor("gemm") == 1.07


def test_the_example_runs():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {"__name__": "example"})


if __name__ == "__main__":
    write_tables(PAGE, TABLES)
