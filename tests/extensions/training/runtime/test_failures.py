"""Runs that go wrong: the rank and its op are named, the run ends in time, and no process stays."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from pipeplan.extensions.training.runtime import agreement, requirements
from pipeplan.extensions.training.runtime.models import load_model
from pipeplan.foundation.errors import InputError, MissingExtraError, RunError
from pipeplan.model import parse_schedule
from tests.extensions.training.runtime.job import PLAN
from tests.extensions.training.runtime.runs import run
from tests.processes import FORKS, ROOT, environment, run_ranks

MODELS = "tests.extensions.training.runtime.models"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("dies", r"^rank 1, step 0, op \d+ \(1F1\), computing: the process was killed by SIGKILL$"),
        ("fails", r"(?m)^rank 1, step 0, op \d+ \(1F1\), computing: RuntimeError: the disk is full$"),
        ("hangs", r"^no rank made progress for 4 s: rank 1, step 0, op \d+ \(1F1\), computing$"),
    ],
)
def test_a_rank_that_goes_wrong_is_named_with_its_op(model: str, message: str) -> None:
    with pytest.raises(RunError, match=message) as raised:
        run(parse_schedule(PLAN), f"{MODELS}:{model}", timeout=4.0)
    assert workers(os.getpid()) == []
    traces = getattr(raised.value, "__notes__", [])
    assert ["in trouble" in trace for trace in traces] == [True] * (model == "fails")


def test_wrong_input_that_only_a_rank_finds() -> None:
    with pytest.raises(InputError, match=r"^layer 7 of model tiny is a int"):
        run(parse_schedule("0F0 0B0"), f"{MODELS}:layer_is_no_module", timeout=30.0)


def test_no_process_stays_when_the_launcher_is_killed() -> None:
    parent = FORKS.Process(target=run, args=(parse_schedule(PLAN), f"{MODELS}:hangs"), kwargs={"timeout": 100.0})
    parent.start()
    launcher = parent.pid or 0
    try:
        wait_for(lambda: len(workers(launcher)) == 3)  # two ranks, and the process that they are forks of
    finally:
        parent.kill()
        parent.join()
    wait_for(lambda: workers(launcher) == [])


def workers(parent: int) -> list[str]:
    """The processes that a launcher started, by their command line, which ends with its process id."""
    result = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode().split("\0")
        except OSError:
            continue
        if "pipeplan.extensions.training.runtime.worker" in words and str(parent) in words:
            result.append(path.parent.name)
    return result


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_inside_a_torchrun_job() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["-m", "tests.extensions.training.runtime.job", f"{MODELS}:tiny"]
    job = subprocess.run(
        command, env=environment(2), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert job.returncode == 0, job.stderr
    assert job.stdout.strip() == "difference 0.0"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The port of a torchrun job whose one process this is, which something else listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        place = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        for name, value in place.items():
            monkeypatch.setenv(name, value)
        yield port


@pytest.mark.usefixtures("alone")
def test_fewer_processes_than_ranks() -> None:
    with pytest.raises(InputError, match=r"has 2 ranks but the job has 1 process\(es\);.* torchrun --nproc-per-node 2"):
        run(parse_schedule(PLAN), f"{MODELS}:tiny")


def test_a_rank_that_hangs_in_a_torchrun_job_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"no progress for 4 s: rank 1, step 0, op \d+ \(1F1\), computing"):
        run_ranks("tests.extensions.training.runtime.job", 2, f"{MODELS}:hangs")


def test_a_port_that_is_in_use(alone: str) -> None:
    with pytest.raises(
        InputError, match=rf"^rank 0 cannot connect to the other ranks at 127.0.0.1:{alone} \(port in use"
    ):
        run(parse_schedule("0F0 0B0"), f"{MODELS}:tiny")


def test_pytorch_is_missing_or_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "version", lambda _: "2.99.1")
    known = ", ".join(requirements.RUNTIME_VERSIONS)
    with pytest.raises(InputError, match=f"unsupported PyTorch 2.99.1: .* supports {known};"):
        run(parse_schedule(PLAN))

    def absent(_: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(requirements, "version", absent)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[pytorch\]'"):
        run(parse_schedule(PLAN))


def test_ranks_with_different_versions() -> None:
    with pytest.raises(InputError, match=r"same version of PyTorch; rank 0: 2\.13\.0, rank 1: 2\.13\.1"):
        agreement._require_same("torch", ["2.13.0", "2.13.1"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"timeout": float("nan")}, "timeout must be more than 0, not nan"),
        ({"device": "tpu"}, "unknown device 'tpu'"),
        ({"model": "gpt-tny"}, "did you mean 'gpt-tiny'"),
        ({"layout": (3, 3)}, "invalid layout"),
        ({"kineto": Path("/no/such/folder")}, "does not exist"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(parse_schedule(PLAN), **options)  # type: ignore[arg-type]


def test_a_model_that_cannot_be_handed_over() -> None:
    model = load_model(f"{MODELS}:dies")
    with pytest.raises(InputError, match="pass it as module:function"):
        run(parse_schedule(PLAN), model)
