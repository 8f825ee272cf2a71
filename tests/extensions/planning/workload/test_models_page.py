"""The page of models says what the code does.

``python -m tests.extensions.planning.workload.test_models_page`` writes its tables.
"""

import re
from pathlib import Path

from pipeplan.extensions.planning.workload import model, model_names, parameter_counts, read_config, token_flops
from pipeplan.extensions.planning.workload.architectures import architectures as architecture_rows
from tests.extensions.planning.workload.test_config_json import CONFIGS
from tests.generated_tables import with_tables, write_tables

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "models.md"


def architectures() -> str:
    examples: dict[str, list[str]] = {}
    for path in sorted(CONFIGS.glob("*.json")):
        source = read_config(path).source.removeprefix("config.json of ").partition(",")[0]
        examples.setdefault(source, []).append(path.stem)
    lines = ["| `model_type` | tested with the published files of |", "|---|---|"]
    for row in sorted(architecture_rows(), key=lambda row: row.name):
        names = ", ".join(f"`{name}`" for name in (row.name, *row.also))
        lines.append(f"| {names} | {', '.join(examples.get(row.name, []))} |")
    return "\n".join(lines) + "\n"


def models() -> str:
    lines = ["| name | parameters | active | with MTP | GFLOP a token | of |", "|---|---|---|---|---|---|"]
    for name in model_names():
        shape = model(name)
        counts = parameter_counts(shape)
        sequence = shape.trained_sequence or 4096
        active = f"{counts.active:,}" if shape.experts else ""
        further = f"{counts.total_with_mtp:,}" if shape.mtp_layers else ""
        flops = token_flops(shape, sequence).training / 1e9
        lines.append(f"| `{name}` | {counts.total:,} | {active} | {further} | {flops:,.2f} | {sequence:,} tokens |")
    return "\n".join(lines) + "\n"


TABLES = {"architectures": architectures, "models": models}


def test_tables_are_current():
    assert PAGE.read_text() == with_tables(PAGE.read_text(), TABLES)


def test_the_example_says_what_comes_out():
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)
    shape = model("llama3-70b")
    assert names["shape"] == shape
    assert f"# {parameter_counts(shape).total}\n" in example
    assert f"# {token_flops(shape, 8192).training / 1e9:.1f} GFLOP" in example


if __name__ == "__main__":
    write_tables(PAGE, TABLES)
