"""What docs/how-to/sweeps.md shows in Python runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "sweeps.md"


def test_the_examples_of_the_page_run(capsys):
    study, engine = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(study, str(PAGE), "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == shown
    exec(compile(engine, str(PAGE), "exec"), {"__name__": "example"})
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["gpipe", "1f1b", "zb-h1"]
