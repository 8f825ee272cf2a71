"""The page of memory says what the code does.

``python -m tests.extensions.planning.estimates.test_memory_page`` writes its tables anew.
"""

from pathlib import Path

from pipeplan.extensions.planning.estimates.memory_rules import RULES, MemoryRules
from pipeplan.extensions.planning.workload import RECOMPUTE, Execution, LayerWork, layers_of, model, recomputed
from tests.generated_tables import with_tables, write_tables

PAGE = Path(__file__).parents[4] / "docs" / "explanation" / "memory.md"
TOKENS = 4096


def layer(name: str, kind: str) -> LayerWork:
    return next(each for each in layers_of(model(name), Execution(sequence=TOKENS)) if each.kind == kind)


EXAMPLES = {
    "`llama3-70b`, a layer": layer("llama3-70b", "dense"),
    "`deepseek-v3`, a layer with experts": layer("deepseek-v3", "moe"),
}


def kept() -> str:
    lines = ["| kept | bytes a token | until |", "|---|---:|---|"]
    for title, result in EXAMPLES.items():
        lines.append(f"| **{title}** | **{result.kept_bytes / TOKENS:,.0f}** | |")
        lines += [f"| {each.name} | {each.bytes / TOKENS:,.0f} | {each.until} |" for each in result.kept if each.bytes]
    return "\n".join(lines) + "\n"


def modules() -> str:
    lines = [
        "| module | what | " + " | ".join(f"not kept of {title}" for title in EXAMPLES) + " |",
        "|---|---|---:|---:|",
    ]
    for name, what in RECOMPUTE.items():
        cells = []
        for result in EXAMPLES.values():
            saved = result.kept_bytes - recomputed(result, {name}).kept_bytes
            cells.append(f"{saved / result.kept_bytes:.1%}" if name in result.recomputable else "")
        lines.append(f"| `{name}` | {what} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def rules() -> str:
    lines = [
        "| software, by how its name begins | gradient | logit | placeholders | 8-bit weights |",
        "|---|---:|---:|---|---|",
    ]
    families: dict[MemoryRules, list[str]] = {}
    for name, rule in RULES.items():
        families.setdefault(rule, []).append(f"`{name}`" if name else "all others: Megatron Core")
    for rule, names in families.items():
        logit = f"{rule.loss_bytes:g} B" if rule.loss_bytes else "2 B, unfused 6 B"
        logit += f", split {rule.split_loss_bytes:g} B" if rule.split_loss_bytes else ""
        placeholders = "yes" if rule.placeholders else ""
        lines.append(
            f"| {', '.join(names)} | {rule.gradient_bytes:g} B | {logit} | {placeholders} | {rule.small_weights or ''} |"
        )
    return "\n".join(lines) + "\n"


TABLES = {"kept": kept, "modules": modules, "rules": rules}


def test_tables_are_current():
    assert PAGE.read_text() == with_tables(PAGE.read_text(), TABLES)


if __name__ == "__main__":
    write_tables(PAGE, TABLES)
