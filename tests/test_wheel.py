"""The wheel as it is published: what is in it, and that it runs in a bare environment, without extras and with them.

``make wheel`` builds it; environments are made anew and filled from the package registry.
"""

import json
import os
import re
import subprocess
import sys
import urllib.request
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

if "PIPEPLAN_WHEEL" not in os.environ:
    pytest.skip("the wheel is installed where it is built: make wheel", allow_module_level=True)

ROOT = Path(__file__).parents[1]
SMALL = ("-p", "4", "-m", "8")


@pytest.fixture(scope="module")
def wheel():
    folder = ROOT / os.environ["PIPEPLAN_WHEEL"]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT], check=True
    )
    return max(folder.glob("pipeplan-*.whl"), key=lambda path: path.stat().st_mtime)


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory):
    """The commands of a new environment that holds the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "--quiet", wheel], check=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def with_extras(wheel, bare):
    """The same environment, later, with the extras ``web`` and ``search``; PyTorch's is as large as a release is."""
    subprocess.run([bare / "pip", "install", "--quiet", f"{wheel}[search,web]"], check=True)
    return bare


def ran(program, *arguments, folder, code=0):
    environment = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    ended = subprocess.run(
        [program, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout if code == 0 else ended.stderr


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
        about = Parser().parsestr(
            opened.read(next(name for name in opened.namelist() if name.endswith("METADATA"))).decode()
        )
        licences = [name for name in opened.namelist() if "/licenses/" in name]
    sources = (
        path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix not in {".nbi", ".nbc", ".pyc"}
    )
    assert names == {path.relative_to(ROOT / "src").as_posix() for path in sources}
    assert [Path(name).name for name in licences] == ["LICENSE"]
    assert "pipeplan/drawing/html/assets/timeline.licences.txt" in names
    assert set(about.get_all("Provides-Extra", [])) == {"all", "cluster", "mcp", "pandas", "pytorch", "search", "web"}
    assert about["Description-Content-Type"] == "text/markdown"
    assert wheel.stat().st_size < 3e6


def test_it_runs_without_extras(bare, tmp_path):
    pipeplan = bare / "pipeplan"
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", ran(pipeplan, "--version", folder=tmp_path))
    assert "makespan" in ran(pipeplan, "simulate", "zbv", *SMALL, folder=tmp_path)
    assert (tmp_path / "pipeline_zbv.png").read_bytes().startswith(b"\x89PNG")
    ran(pipeplan, "compare", *SMALL, "-o", "all.html", "-o", "all.svg", folder=tmp_path)
    assert {"all.html", "all.svg"} <= {path.name for path in tmp_path.iterdir()}
    assert "zbv" in (tmp_path / "all.html").read_text()
    assert "8 ranks" in ran(pipeplan, "compare", "1f1b", "zbv", "--config", "gpt-6.2b-24", folder=tmp_path)
    record = json.loads(ran(pipeplan, "explain", "zb-h1", *SMALL, "--json", folder=tmp_path))
    assert record["schedule"] == "zb-h1"
    plan = ("--model", "llama3-8b", "--cluster", "h100-sxm:8", "--global-batch", "32", "--sequence", "8192")
    assert "step" in ran(pipeplan, "plan", *plan, "--seconds", "3", folder=tmp_path)


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (("serve",), "web"),
        (("mcp",), "mcp"),
        (("run", "1f1b", "-p", "2"), "pytorch"),
        (("profile", "1f1b", "--model", "gpt-tiny"), "pytorch"),
    ],
)
def test_what_needs_an_extra_names_it(bare, command, extra, tmp_path):
    assert f"pip install 'pipeplan[{extra}]'" in ran(bare / "pipeplan", *command, folder=tmp_path, code=2)


def test_with_its_extras_it_proves_and_serves(with_extras, tmp_path):
    question = ("-p", "2", "-m", "4", "--seconds", "5", "--json")
    assert json.loads(ran(with_extras / "pipeplan", "search", *question, folder=tmp_path))["optimal"] is True
    command = [with_extras / "python", "-u", "-m", "pipeplan", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        try:
            address = next(match.group(0) for line in server.stdout if (match := re.search(r"http://[\w.:]+", line)))
            with urllib.request.urlopen(address, timeout=30) as answer:
                assert "<title>" in answer.read().decode()
        finally:
            server.terminate()
    assert "No broken requirements" in ran(with_extras / "pip", "check", folder=tmp_path)
