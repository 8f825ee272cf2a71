"""The README says what the code does. ``python -m tests.test_readme`` writes its table of strategies anew."""

import re
import shutil
from pathlib import Path

from pipeplan.cli import main
from pipeplan.strategies import STRATEGIES

README = Path(__file__).parents[1] / "README.md"
TABLE = re.compile(r"(<!-- strategies: .* -->\n)(.*?)(<!-- strategies end -->)", re.DOTALL)


def strategy_table() -> str:
    rows = ["| strategy | placement | shapes | idle time | peak memory | paper |", "|---|---|---|---|---|---|"]
    for strategy in STRATEGIES.values():
        cells = (strategy.placement, strategy.accepts, strategy.bubble.text, strategy.memory.text, strategy.paper)
        rows.append(f"| `{strategy.name}`: {strategy.title} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def test_the_table_of_strategies_is_current():
    found = TABLE.search(README.read_text())
    assert found is not None
    assert found.group(2) == strategy_table()


def test_the_example_in_python_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    exec(example, {})
    assert capsys.readouterr().out.splitlines()[-1] == "True"
    assert (tmp_path / "1f1b.csv").exists()


def test_from_a_config_to_flags(tmp_path, monkeypatch, capsys):
    """With less time than a reader has, and in the folder of the reader's config.json."""
    config = Path(__file__).parent / "workload" / "configs" / "Meta-Llama-3-70B.json"
    shutil.copy(config, tmp_path / "config.json")
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^pipeplan plan .*$", README.read_text(), re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        assert main([*line.split()[1:], "--seconds", "3", "--workers", "1"]) == 0
    assert capsys.readouterr().out.rstrip().endswith(")")


def test_the_example_of_an_estimate(monkeypatch, capsys):
    monkeypatch.chdir(README.parent)
    (line,) = re.findall(r"^pipeplan estimate (\S+)", README.read_text(), re.MULTILINE)
    assert main(["estimate", line]) == 0
    assert "peak memory" in capsys.readouterr().out


if __name__ == "__main__":
    README.write_text(TABLE.sub(lambda match: match.group(1) + strategy_table() + match.group(3), README.read_text()))
