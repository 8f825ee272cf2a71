"""``docs/reference/hardware.md``: its example runs, and its tables are the code's.

``python -m tests.extensions.planning.hardware.test_page`` writes the tables anew.
"""

from __future__ import annotations

import re
from pathlib import Path

from pipeplan.extensions.planning.hardware import PRESETS, Preset, cluster
from pipeplan.extensions.planning.hardware.efficiency import GENERATIONS, Attention, Generation

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "hardware.md"


def table(headings: str, rows: list[list[str]]) -> str:
    names = headings.split(" | ")
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


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
        [gpu_row(each) for each in PRESETS.values()],
    ),
    "constants": lambda: table(
        "generation | products reach | times: into 32 bits, grouped | `fill`, partial waves lost | attention: `reach`, "
        "`half_keys`, `half_dim`, `block` | backward | passes reach, a kernel takes",
        [constants_row(name, each) for name, each in GENERATIONS.items()],
    ),
}


def written(page: str) -> str:
    for name, made in TABLES.items():
        start, rest = page.split(f"<!-- {name}: python -m tests.extensions.planning.hardware.test_page -->\n", 1)
        _, end = rest.split("<!-- end -->", 1)
        page = (
            f"{start}<!-- {name}: python -m tests.extensions.planning.hardware.test_page -->\n{made()}<!-- end -->{end}"
        )
    return page


def test_the_tables_are_the_codes():
    page = PAGE.read_text()
    assert page == written(page), "python -m tests.extensions.planning.hardware.test_page"


def test_the_example_runs():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {"__name__": "example"})


def test_the_clusters_file_is_read(tmp_path):
    text = next(block for block in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL) if "per_node" in block)
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    assert cluster(path).gpus == 128
    assert cluster(path).between.bandwidth == 25e9


def test_the_short_calibration_is_read(tmp_path):
    from pipeplan.extensions.planning import read_calibration

    text = next(block for block in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL) if "factors" in block)
    path = tmp_path / "calibration.yaml"
    path.write_text(text)
    assert read_calibration(path).factor("gemm") == 1.07


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
