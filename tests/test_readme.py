"""The README says what the code does. ``python -m tests.test_readme`` writes its table of strategies anew."""

import re
from pathlib import Path

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


if __name__ == "__main__":
    README.write_text(TABLE.sub(lambda match: match.group(1) + strategy_table() + match.group(3), README.read_text()))
