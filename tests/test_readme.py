"""The README's commands that take long, with less time; what the others print is compared in ``tests/docs``."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pipeplan
from pipeplan.cli import main

README = Path(__file__).parents[1] / "README.md"


def test_the_costs_of_a_user_reach_every_schedule(tmp_path):
    """Four times of four ranks are the costs of schedules with one chunk per rank and with several."""
    (costs,) = re.findall(r'```yaml title="mine.yaml"\n(.*?)```', README.read_text(), re.DOTALL)
    file = tmp_path / "mine.yaml"
    file.write_text(costs)
    table = pipeplan.compare(config=file)
    assert not table.refused
    assert {result.chunks for result in table} == {1, 2}


@pytest.mark.slow
def test_from_a_model_to_flags(capsys):
    """With less time than a reader has; the README names each trainer's flags in words."""
    (line,) = re.findall(r"^\$ pipeplan (plan .*)$", README.read_text(), re.MULTILINE)
    (trainer,) = re.findall(r"`--flags (\w+)`", README.read_text())
    assert main([*line.split(), "--flags", trainer, "--seconds", "1", "--workers", "1"]) == 0
    assert "torchrun --nproc-per-node 8" in capsys.readouterr().out


WITHOUT_TORCH = """#!{python}
import importlib.metadata, sys
installed = importlib.metadata.version
def version(name):
    if name == "torch":
        raise importlib.metadata.PackageNotFoundError(name)
    return installed(name)
importlib.metadata.version = version
from pipeplan.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_run_without_pytorch_says_how_to_install_it(tmp_path):
    """As the README shows it."""
    (line,) = re.findall(r"^(pipeplan run .*)$", README.read_text(), re.MULTILINE)
    command = tmp_path / "pipeplan"
    command.write_text(WITHOUT_TORCH.format(python=sys.executable))
    command.chmod(0o755)
    (tmp_path / "better.csv").write_text("0F0,0B0\n1F0,1B0\n")
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert "needs the package 'torch': pip install '.[pytorch]'" in done.stderr
    assert done.returncode == 2
