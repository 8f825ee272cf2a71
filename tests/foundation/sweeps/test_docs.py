"""What docs/how-to/sweeps.md shows in Python runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "sweeps.md"


def test_the_examples_of_the_page_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study, figure, _ = (
        compile(text, str(PAGE), "exec") for text in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    )
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names = {"__name__": "example"}
    exec(study, names)
    assert capsys.readouterr().out == shown
    exec(figure, names)
    assert {file.name for file in tmp_path.iterdir()} >= {"study.db", "study.png"}
