"""docs/how-to/planning.md: its commands run, and its tables are those of the code.

``python -m tests.test_planning_page`` runs the commands and writes their outputs and the pictures anew, in a few minutes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from io import StringIO
from pathlib import Path

import pytest

from pipeplan.cli import main
from pipeplan.extensions.planning import CHOICES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "how-to" / "planning.md"
RUN = re.compile(r"(<!-- run: (?P<line>.*?) \| (?P<part>.*?) -->\n)(?P<shown>.*?)(<!-- end -->)", re.DOTALL)
PICTURE = "pipeplan plan --model llama3-70b --cluster h100-sxm:8x8 --global-batch 128 --sequence 8192 "
PICTURE += "--fix trainer=megatron zero=1 -o docs/plan.png"


def lines_of(text: str) -> list[str]:
    """The commands of a page: those that stand to be copied, and those whose output it shows."""
    blocks = re.findall(r"```\n(.*?)```", text, re.DOTALL)
    copied = [line for block in blocks for line in block.splitlines() if line.startswith("pipeplan ")]
    return list(dict.fromkeys([*copied, *(result["line"] for result in RUN.finditer(text))]))


@cache
def output(line: str) -> str:
    """What a command prints, in 80 columns."""
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(StringIO()):
        code = main(shlex.split(line)[1:])
    assert code in (0, 1), line
    return out.getvalue()


def part_of(text: str, wanted: str) -> str:
    """From a line that begins so to the next that begins so (``FROM .. TO + MORE``); ``^$`` is an empty line."""
    first, _, rest = wanted.partition(" .. ")
    last, _, more = rest.partition(" + ")
    lines = text.splitlines()
    begin = next(place for place, line in enumerate(lines) if re.match(first, line))
    end = next((place for place, line in enumerate(lines) if place > begin and re.match(last, line)), len(lines))
    shown = lines[begin : end + int(more or 0) + (last != "^$" and not last.startswith("^"))]
    return "\n".join(shown).rstrip() + "\n"


def choices_table() -> str:
    rows = ["| name | is |", "|---|---|"]
    rows += [f"| {', '.join(f'`{name}`' for name in choice.names)} | {choice.title} |" for choice in CHOICES]
    return "\n".join(rows) + "\n"


def between(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name} -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def test_the_table_of_choices_is_current():
    match = between("choices").search(PAGE.read_text())
    assert match is not None
    assert match.group(2) == choices_table(), "run python -m tests.test_planning_page"


@pytest.mark.parametrize("line", lines_of(PAGE.read_text()))
def test_every_command_runs(line, monkeypatch, tmp_path):
    """With less time than a reader has; the outputs on the page are checked when they are written."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    assert output(f"{line} --seconds 0.1 --workers 1" if " plan " in line else line)


def test_the_outputs_are_shown():
    for result in RUN.finditer(PAGE.read_text()):
        assert result["shown"].startswith("```text\n"), result["line"]
        assert len(result["shown"].splitlines()) > 4, result["line"]


def test_the_example_in_python_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(example.replace("seconds=5", "seconds=0.1, workers=1"), {})
    assert "--tensor-model-parallel-size" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"plan.png", "order.csv"}


def written(text: str) -> str:
    """The page with the outputs of its commands and its tables anew."""

    def shown(found: re.Match[str]) -> str:
        return f"{found.group(1)}```text\n{part_of(output(found['line']), found['part'])}```\n{found.group(5)}"

    text = RUN.sub(shown, text)
    return between("choices").sub(partial(_with_table, choices_table()), text)


def _with_table(table: str, found: re.Match[str]) -> str:
    return f"{found.group(1)}{table}{found.group(3)}"


def screenshot() -> Iterator[None]:
    """The page of the web app with an answer, where there is a browser."""
    from tests.browser import chromium
    from tests.extensions.web.running import running

    query = "?model=llama3-70b&cluster=h100-sxm:8x8&global_batch=128&sequence=8192"
    query += "&fix=trainer%3Dmegatron+software%3Dnemo+zero%3D1+offload%3D0"
    with running() as address, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 1180})
        page.goto(f"{address}/plan{query}")
        page.wait_for_selector("button.primary")
        page.click("button.primary")
        page.wait_for_selector(".pp-chart", timeout=120_000)
        page.wait_for_timeout(1000)
        page.screenshot(path=str(ROOT / "docs" / "plan-page.png"))
        yield


if __name__ == "__main__":
    import os

    os.environ["COLUMNS"] = "80"
    os.chdir(ROOT)
    PAGE.write_text(written(PAGE.read_text()))
    output(PICTURE)
    for _ in screenshot():
        pass
