"""The page of models says what the code does.

``python -m tests.extensions.planning.workload.test_models_page`` writes its tables.
"""

import re
from pathlib import Path
from textwrap import fill

from pipeplan.extensions.planning.workload import model, model_names, parameter_counts, read_config, token_flops
from pipeplan.extensions.planning.workload.architectures import architectures as architecture_rows
from tests.extensions.planning.workload.test_config_json import CONFIGS
from tests.generated_tables import with_tables, write_tables

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "models.md"


def architectures() -> str:
    tested = {
        read_config(path).source.removeprefix("config.json of ").partition(",")[0] for path in CONFIGS.glob("*.json")
    }
    names = []
    for row in sorted(architecture_rows(), key=lambda row: row.name):
        mark = "**" if row.name in tested else ""
        names += [f"{mark}`{name}`{mark}" for name in (row.name, *row.also)]
    return fill(", ".join(names) + ".", 120, break_on_hyphens=False, break_long_words=False) + "\n"


def models() -> str:
    """Return a row a model, without blanks between cells: they would count as words."""
    lines = ["|name|parameters|active|GFLOP a token|of tokens|", "|---|---:|---:|---:|---:|"]
    for name in model_names():
        shape = model(name)
        counts = parameter_counts(shape)
        sequence = shape.trained_sequence or 4096
        active = f"{counts.active:,}" if shape.experts else ""
        flops = token_flops(shape, sequence).training / 1e9
        lines.append(f"|`{name}`|{counts.total:,}|{active}|{flops:,.2f}|{sequence:,}|")
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
