"""``pipeplan profile --calibrate``: one GPU, or the stages of a run, against what the planner expects of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import pipeplan

TORCHTITAN = Path(__file__).parents[1] / "training" / "traces" / "data" / "torchtitan_zbv_fsdp"

CPU = """\
gpu: {name: cpu, peak: {bf16: 50 GFLOP/s}, memory_bytes: 16 GB, memory_bandwidth: 20 GB/s, multiprocessors: 1}
inside: {bandwidth: 1 GB/s, latency: 10 us}
between: {bandwidth: 1 GB/s, latency: 10 us}
per_node: 4
"""
TINY = """\
{name: tiny, layers: 4, hidden: 64, heads: 4, kv_heads: 2, ffn: 128, vocab: 256, gated: true, seq: 64}
"""
RAN = """\
model: tiny.yaml
cluster: cpu.yaml
global_batch: 8
sequence: 64
pp: 2
dp: 2
vp: 2
schedule: zbv
"""
MEASURE = "profile --calibrate tiny.yaml --gpu cpu.yaml --device cpu --sequence 32 --repeats 1"


@pytest.fixture(autouse=True)
def _files(tmp_path):
    for name, text in (("cpu.yaml", CPU), ("tiny.yaml", TINY), ("ran.yaml", RAN)):
        (tmp_path / name).write_text(text)


def test_a_gpu_is_calibrated_for_estimates(run):
    code, out, err = run(f"{MEASURE} -o calibration.yaml")
    assert (code, err.splitlines()[-1]) == (0, "wrote calibration.yaml")  # a slow machine shows progress, too
    assert out.startswith("cpu, measured on CPU, 1 thread(s), PyTorch ")
    for kind in ("gemm", "attention", "memory", "head", "loss", "optimizer"):
        assert f"\n{kind} " in out
    plain, calibrated = (
        json.loads(run(f"estimate ran.yaml --json{more}")[1])["rows"][0]
        for more in ("", " --calibration calibration.yaml")
    )
    assert set(plain["costs_from"].values()) == {"analytic"}
    assert calibrated["costs_from"]["gemm"] == "calibrated"
    assert calibrated["step_time_s"] != plain["step_time_s"]


def test_json_is_a_calibration_too(run, tmp_path):
    code, out, _ = run(f"{MEASURE} --json")
    assert code == 0
    assert json.loads(out)["gpu"] == "cpu"
    (tmp_path / "calibration.json").write_text(out)
    assert run("estimate ran.yaml --calibration calibration.json")[0] == 0


def test_a_run_updates_it(run, tmp_path):
    (tmp_path / "known.yaml").write_text("gpu: cpu\nfactors: {gemm: 2.0}\n")
    code, out, err = run(f"profile --calibrate ran.yaml --from {TORCHTITAN} --calibration known.yaml -o known.yaml")
    assert (code, err) == (0, "wrote known.yaml\n")
    assert "gemm       2.000" in out
    assert "\ncompute " in out
    before = (tmp_path / "known.yaml").read_text()
    code, _, err = run(f"diff zbv {TORCHTITAN} -p 2 -m 4 --configuration ran.yaml --calibration known.yaml")
    assert (code, err) == (0, "wrote known.yaml\n")
    assert (tmp_path / "known.yaml").read_text() == before
    code, _, err = run(f"diff zbv {TORCHTITAN} -p 2 -m 4 --configuration ran.yaml --calibration new.yaml")
    assert (code, err) == (0, "wrote new.yaml\n")
    difference = pipeplan.diff(
        "zbv", TORCHTITAN, ranks=2, microbatches=4, configuration="ran.yaml", calibration="other.yaml"
    )
    assert difference.calibration is not None
    difference.calibration.save("other.yaml")
    assert Path("other.yaml").read_text() == Path("new.yaml").read_text()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("profile --calibrate tiny.yaml", "gpu is required: a name"),
        ("profile --calibrate tiny.yaml --gpu h100-sx", "unknown GPU 'h100-sx'; did you mean 'h100-sxm'?"),
        ("profile --calibrate tiny.yaml --gpu h100-sxm --device cpu", "PyTorch finds none"),
        ("profile --calibrate tinny.yaml --gpu cpu.yaml", "tinny.yaml"),
        ("profile --calibrate tiny.yaml --gpu none.yaml", "no such file"),
        (
            "profile --calibrate tiny.yaml --gpu cpu.yaml --device cpu --sequence 0",
            "sequence must be at least 1, not 0",
        ),
        (f"{MEASURE} --microbatch-size 0", "microbatch"),
        (f"{MEASURE} -o calibration.txt", "invalid calibration file calibration.txt"),
        (f"{MEASURE} -o tiny.yaml", "inputs are never overwritten"),
        (f"{MEASURE} -p 4", "unknown option '-p'"),
        ("profile 1f1b --calibrate tiny.yaml --gpu cpu.yaml", "unexpected argument 'tiny.yaml'"),
        (f"profile --calibrate tiny.yaml --from {TORCHTITAN}", "a configuration needs model"),
        ("profile --calibrate ran.yaml --from nowhere", "nowhere"),
        ("profile --calibrate llama3-8b --from nowhere", "llama3-8b is no configuration file: pass that of the run"),
        (f"diff zbv {TORCHTITAN} -p 2 -m 4 --configuration ran.yaml", ": calibration is missing"),
        (f"diff zbv {TORCHTITAN} -p 2 -m 4 --calibration a.yaml", ": configuration is missing"),
        ("estimate ran.yaml --calibration none.yaml", "cannot read the calibration none.yaml"),
    ],
)
def test_what_cannot_be_calibrated(run, line, message):
    code, out, err = run(line)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_calibration_of_another_gpu_is_refused(run, tmp_path):
    (tmp_path / "other.yaml").write_text("gpu: h100-sxm\nfactors: {gemm: 2.0}\n")
    said = "the calibration is for h100-sxm, but the cluster has cpu"
    code, _, err = run(
        "plan --model tiny.yaml --cluster cpu.yaml --global-batch 8 --sequence 64 --calibration other.yaml --seconds 1"
    )
    assert code == 2
    assert said in err
    code, _, err = run(f"profile --calibrate ran.yaml --from {TORCHTITAN} --calibration other.yaml")
    assert code == 2
    assert said in err
