"""The container: no engine is needed to look at its recipe and to do what it does in a fresh environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the container holds the web app, which needs the extra 'web'")

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", "")
STEPS = [tuple(line.split(maxsplit=1)) for line in TEXT.splitlines() if line and line[0] != "#"]


def arguments(instruction: str) -> list[str]:
    return [step[1] for step in STEPS if step[0] == instruction]


def test_its_images_are_of_a_release():
    stages: list[str] = []
    for image, *name in (line.split() for line in arguments("FROM")):
        assert image in stages or re.fullmatch(r"python:\d+\.\d+-slim", image)
        stages += name[1:]
    assert stages == ["build", "app", "demo"]


def test_its_kernels_are_compiled_for_any_processor_before_the_user_who_runs_them_is():
    assert {"NUMBA_CPU_NAME=generic", "NUMBA_CPU_FEATURES="} <= {
        word for line in arguments("ENV") for word in line.split()
    }
    (folder,) = re.findall(r"NUMBA_CACHE_DIR=(\S+)", TEXT)
    assert not folder.startswith(("/tmp", "/home"))  # replaced by --tmpfs; writable
    warmed = STEPS.index(("RUN", "pipeplan warm"))
    assert warmed < min(place for place, step in enumerate(STEPS) if step[0] == "USER")


def test_it_runs_as_an_ordinary_user_and_is_watched():
    instructions = [step[0] for step in STEPS]
    runs = [place for place, instruction in enumerate(instructions) if instruction == "CMD"]
    assert len(runs) == 2
    for place in runs:
        assert STEPS[place - 3 : place][0] == ("USER", "pipeplan")
        assert instructions[place - 3 : place] == ["USER", "EXPOSE", "HEALTHCHECK"]
    assert "ADD" not in instructions


def test_what_it_copies_is_there_and_not_ignored():
    kept = {line[1:] for line in (ROOT / "deploy" / "Dockerfile.dockerignore").read_text().split() if line[0] == "!"}
    copied = {name for line in arguments("COPY") if "--from" not in line for name in line.split()[:-1]}
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """An environment with the wheel that the container would hold; what it needs is that of the tests."""
    folder = tmp_path_factory.mktemp("container")
    (wheel,) = (line.removeprefix("python ") for line in arguments("RUN") if "pip wheel" in line)
    built = run(sys.executable, *wheel.replace("dist .", f"{folder} {ROOT}").split())
    if built.returncode != 0:
        pytest.skip(f"the wheel cannot be built here, most likely without a registry: {built.stderr[-300:]}")
    assert run(sys.executable, "-m", "venv", "--without-pip", folder / "fresh").returncode == 0
    fresh = folder / "fresh" / "bin" / "python"
    (site,) = (folder / "fresh" / "lib").glob("python*/site-packages")
    done = run(sys.executable, "-m", "pip", "--python", fresh, "install", "--no-deps", *folder.glob("*.whl"))
    assert done.returncode == 0, done.stderr
    (site / "rest.pth").write_text(sysconfig.get_paths()["purelib"])
    return Path(fresh)


def test_its_command_starts_the_server(installed):
    name, *rest = json.loads(arguments("CMD")[-1])
    rest[rest.index("--port") + 1] = "0"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [installed.parent / name, *rest]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd="/") as server:
        try:
            assert server.stderr is not None
            address = server.stderr.readline().split()[3]
            for path in ("", "api", "api/schedules", "assets/app.js", "assets/timeline.js", "assets/app.css"):
                with urllib.request.urlopen(f"{address}{path}", timeout=60) as answer:
                    assert answer.status == 200
        finally:
            server.terminate()
            server.wait(timeout=30)
