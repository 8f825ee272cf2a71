"""The README's commands that take long, with less time; what the others print is compared in ``tests/docs``."""

import re
import shutil
from pathlib import Path

from pipeplan.cli import main

README = Path(__file__).parents[1] / "README.md"


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
