"""What docs/how-to/sweeps.md shows in Python runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "sweeps.md"


def test_the_example_of_the_page_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {"__name__": "example"})
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["gpipe", "1f1b", "zb-h1"]
