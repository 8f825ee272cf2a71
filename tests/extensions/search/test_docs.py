"""What docs/explanation/search.md shows in Python runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "search.md"


def test_the_example_of_the_page_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    value, bound, *_ = capsys.readouterr().out.split()
    assert float(value) >= float(bound) > 0
