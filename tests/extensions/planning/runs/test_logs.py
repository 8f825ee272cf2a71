"""Training logs: lines as trainers print them, warm-up, restarts, other batches, and files that are no log."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from pipeplan.extensions.planning import Configuration
from pipeplan.extensions.planning.runs.logs import Measurement, measured_as
from pipeplan.foundation.errors import FormatError, InputError

CONFIGURATION = Configuration(sequence=8192, global_batch=128, tensor=4, pipeline=4, context=2, data=2)


def read(path: Path) -> Measurement:
    return measured_as(str(path), CONFIGURATION)


def step_of(found: Measurement) -> float:
    return median(found.seconds(CONFIGURATION))


def megatron(step: int, milliseconds: float, batch: int = 128) -> str:
    return (
        f" [2026-03-02 10:12:12.123456] iteration {step:8d}/     100 | consumed samples: {step * batch:12d} | elapsed time "
        f"per iteration (ms): {milliseconds:.1f} | throughput per GPU (TFLOP/s/GPU): 412.3 | learning rate: 3.000000E-06 | "
        f"global batch size: {batch:5d} | lm loss: 1.2E+01 | loss scale: 1.0 | number of nan iterations:   0 |"
    )


def timers(**milliseconds: tuple[float, float]) -> list[str]:
    names = {name.replace("_", "-"): pair for name, pair in milliseconds.items()}
    lines = [f"    {(name + ' ').ljust(48, '.')}: ({low:.2f}, {high:.2f})" for name, (low, high) in names.items()]
    return ["(min, max) time across ranks (ms):", *lines]


def titan(rank: int, step: int, tps: int, gib: float) -> str:
    return (
        f"[rank{rank}]:[titan] 2025-06-16 22:30:50,322 - root - INFO - \x1b[31mstep: {step:2d}  \x1b[32mloss:  6.13840  "
        f"\x1b[38;2;180;60;0mgrad_norm:  0.8319  \x1b[38;2;54;234;195mmemory: {gib:5.2f}GiB(52.28%)  \x1b[34mtps: {tps:,}  "
        f"\x1b[36mtflops: {tps * 0.0579:,.2f}  \x1b[35mmfu: 34.29%\x1b[39m"
    )


def nemo(step: int, seconds: float) -> str:
    return (
        f" 0: Training epoch 0, iteration {step}/29 | lr: 5.389e-06 | global_batch_size: 128 | global_step: {step} | "
        f"max_memory_reserved: 57466159104 | max_memory_allocated: 53687091200 | reduced_train_loss: 10.22 | "
        f"train_step_timing in s: {seconds} | consumed_samples: 4608 | TFLOPS_per_GPU: 85.8"
    )


def written(folder: Path, *lines: str) -> Path:
    path = folder / "step.log"
    path.write_text("\n".join([" > building train, validation, and test datasets for GPT ...", *lines]))
    return path


def test_megatrons_lines_give_steps_memory_and_timers_without_warm_up(tmp_path):
    memory = "memory (MB) | allocated: 41000.00 | max allocated: 65536.00 | reserved: 66000.00 | max reserved: 66560.00"
    times = [53048.6, 19000.0, 14253.1, 14260.0, 14240.0]
    lines = [
        line
        for step, time in enumerate(times, start=1)
        for line in (megatron(step, time), *timers(forward_compute=(time / 4, time / 3), optimizer=(40.0, 50.0)))
    ]
    found = read(written(tmp_path, f"[Rank 48] (after 1 iterations) {memory}", *lines))
    assert found.trainer == "Megatron-LM"
    assert found.warm_up == 2
    assert found.seconds(CONFIGURATION) == pytest.approx([14.2531, 14.26, 14.24])
    assert found.timers()["forward-compute"] == pytest.approx((14.2531 / 4, 14.2531 / 3), rel=1e-5)
    assert found.timers()["optimizer"] == pytest.approx((0.04, 0.05))
    assert found.memory == ({48: 64.0}, {48: 65.0})


def test_torchtitans_lines_of_several_ranks_count_once_and_give_the_step_by_its_tokens(tmp_path):
    steps = [(1, 1200), (10, 7285), (20, 7285)]
    lines = [titan(rank, step, tps, 47.5 + rank) for step, tps in steps for rank in (0, 1)]
    found = read(written(tmp_path, *lines))
    assert (found.trainer, found.warm_up, len(found.steps)) == ("torchtitan", 1, 2)
    assert step_of(found) == pytest.approx(128 * 8192 / 64 / 7285)
    assert found.memory == ({}, {0: 47.5, 1: 48.5})


def test_lines_of_nemo_bridge_and_automodel_are_read(tmp_path):
    found = read(written(tmp_path, *(nemo(step, 27.0) for step in range(3))))
    assert (found.trainer, step_of(found), found.memory[0]) == ("NeMo", 27.0, {-1: 50.0})
    bridge = ["Step Time : 9.92s GPU utilization: 645.2MODEL_TFLOP/s/GPU"] * 3
    assert step_of(read(written(tmp_path, *bridge))) == 9.92
    both = [line for step in (1, 2, 3) for line in (bridge[0], megatron(step, 9920.0))]
    assert read(written(tmp_path, *both)).trainer == "Megatron-LM"
    auto = [
        f"step {step} | epoch 0 | loss 1.2 | grad_norm 1.0 | lr 1.00e-05 | mem 30.10 GiB | tps 64000.00(1000.00/gpu) | "
        for step in range(3)
    ]
    found = read(written(tmp_path, *auto))
    assert step_of(found) == pytest.approx(16.384)
    assert found.memory[0] == {-1: 30.1}


def test_every_restart_warms_up_again_and_other_batches_are_left_out(tmp_path):
    first = [megatron(step, time) for step, time in enumerate((50e3, 14e3, 14e3), start=1)]
    ramp = [megatron(step, 7e3, batch=64) for step in (4, 5)]
    again = [megatron(step, time) for step, time in enumerate((60e3, 15e3, 15e3), start=2)]
    found = read(written(tmp_path, *first, *ramp, *again))
    assert found.seconds(CONFIGURATION) == [14.0, 14.0, 15.0, 15.0]
    assert (found.warm_up, found.other_batches) == (2, 2)


def test_a_duration_is_a_measured_step():
    for text in ("14.25s", "14.25", "14250 ms", 14.25):
        assert measured_as(text, CONFIGURATION).seconds(CONFIGURATION) == [pytest.approx(14.25)]
    with pytest.raises(InputError, match="measured step '0s': no such file, and no duration above 0"):
        measured_as("0s", CONFIGURATION)


def test_torn_bytes_and_the_lines_of_earlier_torchtitan_are_read(tmp_path):
    path = tmp_path / "step.log"
    lines = [titan(0, step, 7285, 47.5).replace("tps:", "wps:") for step in range(1, 4)]
    path.write_bytes(b"caf\xe9\n" + "\n".join(lines).encode())
    assert read(path).seconds(CONFIGURATION) == [pytest.approx(128 * 8192 / 64 / 7285)] * 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; expected the lines of Megatron-LM"),
        (b"\x80\x00\xff", "is not text: .*pass a measured step as a duration"),
        (b"loss 2.5\n", "no line with a step time: expected the lines"),
        (megatron(1, 5e4).encode(), "only 1 logged step of warm-up: log 10 or more"),
        (
            megatron(1, 5e4, batch=256).encode(),
            "steps of 256 sequences, but global_batch is 128: set it to the log's",
        ),
        (
            titan(64, 1, 1200, 40.0).encode(),
            "has rank 64, but the configuration has 64 GPUs: pass the run's own configuration",
        ),
    ],
)
def test_what_is_no_log_of_the_run_is_refused_with_a_remedy(tmp_path, content, message):
    path = tmp_path / "step.log"
    path.write_bytes(content)
    with pytest.raises((FormatError, InputError), match=message) as caught:
        read(path)
    assert caught.value.field == "measured"
    assert "\n" not in str(caught.value)
