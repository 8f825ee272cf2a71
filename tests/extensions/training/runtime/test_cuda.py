"""The paths of a GPU: events, allocator statistics, NCCL. One rank, so that one GPU is enough."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch

from pipeplan.extensions.training.options import RunOptions
from pipeplan.extensions.training.runtime.group import process_group
from pipeplan.extensions.training.runtime.models import GPT
from pipeplan.extensions.training.runtime.offloading import Offloading, StreamLink
from pipeplan.extensions.training.runtime.progress import Places
from pipeplan.extensions.training.runtime.results import RunResult
from pipeplan.extensions.training.runtime.running import RunTask
from pipeplan.extensions.training.runtime.saved_tensors import Staying
from pipeplan.extensions.training.runtime.stage_measurement import Stage, measure
from pipeplan.model import Kind, Placement, parse_schedule
from pipeplan.passes import lower_for_torch
from pipeplan.runtime import profile

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")

WIDE = GPT(blocks=8, width=96, heads=4, length=48, vocabulary=64, microbatch=3)

PLAN = "0F0 0F1 0B0 0I1 0W1"

SAVING = "0F0 0OFFLOAD0 0F1 0F2 0OFFLOAD2 0R1 0B1 0RELOAD0 0RELOAD2 0B0 0I2 0W2"


@pytest.fixture(params=[PLAN, SAVING])
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> RunResult:
    """Of a run in this process, without the gate for other versions of PyTorch: the GPU's is what it is."""
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("pipeplan.extensions.training.runtime.pipeline.require_torch", lambda: None)
    model = WIDE.model("wide")
    options = RunOptions(model=model, steps=3, verify=True, device="cuda")
    task = RunTask(schedule=lower_for_torch(parse_schedule(request.param)), options=options)
    device = torch.device("cuda", 0)
    with process_group(device, 1, timeout=60.0, store=tmp_path / "store") as rank:
        return task.work(rank, device, Places(1))


def test_a_run_on_a_gpu(result: RunResult) -> None:
    assert result.gradients_equal
    assert result.peak_bytes is not None
    assert result.peak_bytes[0] > 0
    timeline = result.timeline
    compute = result.schedule.where(Kind.F, Kind.B, Kind.I, Kind.W, Kind.R)
    assert (timeline.end >= timeline.start).all()
    assert (timeline.end[compute] >= timeline.start[compute]).all()
    assert (timeline.start[compute[1:]] >= timeline.end[compute[:-1]]).all()
    assert timeline.makespan == pytest.approx(1e3 * result.median_step_seconds)


def test_a_profile_on_a_gpu() -> None:
    answer = profile(WIDE.model("wide"), Placement.linear(2), device="cuda", together=False, repeats=3)
    for stage in answer.stages:
        assert stage.forward.median > 0
        assert stage.transient_bytes is not None
        assert stage.transient_bytes >= 0
        assert stage.activation_bytes > stage.input_bytes


def test_what_leaves_a_gpu_is_free_there() -> None:
    device = torch.device("cuda", 0)
    offloading = Offloading([(0, 0)], StreamLink(device))
    x = torch.randn(1 << 10, 1 << 10, device=device, requires_grad=True)
    expected = torch.autograd.grad(x.sigmoid().sin().sum(), x)[0]
    staying = Staying(torch.nn.Identity(), device)
    staying.before(x)
    before = torch.cuda.memory_allocated()
    with offloading.saving((0, 0), staying):
        output = x.sigmoid().sin().sum()
    offloading.forward_ended((0, 0), int)
    assert torch.cuda.memory_allocated() - before >= x.nbytes
    offloading.offload((0, 0))
    assert torch.cuda.memory_allocated() - before < x.nbytes
    offloading.reload((0, 0), int)
    offloading.arrive((0, 0))
    assert torch.equal(torch.autograd.grad(output, x)[0], expected)


def test_a_known_module_holds_what_it_must_on_a_gpu() -> None:
    inputs = torch.zeros(64, 32, device="cuda")
    module = torch.nn.Linear(32, 16, bias=False, device="cuda")
    answer = measure(Stage(module, (1, 2), inputs, None, first=False), repeats=1, warmup=1)
    assert answer.activation_bytes == inputs.nbytes + 64 * 16 * 4
