"""Files as pipeplan's own writers make them, of every kind that a command reads: what attacks on files start from."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import yaml

from tests.traces.traces import rank_trace

ROOT = Path(__file__).parents[2]


CLUSTER = """\
gpu: {name: mine, peak: {bf16: 50 TFLOP/s}, memory_bytes: 16 GB, memory_bandwidth: 200 GB/s, multiprocessors: 16}
inside: {bandwidth: 10 GB/s, latency: 10 us}
between: {bandwidth: 1 GB/s, latency: 10 us}
per_node: 4
"""
MODEL = "{name: tiny, layers: 4, hidden: 64, heads: 4, kv_heads: 2, ffn: 128, vocab: 256, gated: true, seq: 64}\n"
CONFIGURATION = """\
model: model.yaml
cluster: cluster.yaml
global_batch: 8
sequence: 64
pp: 2
dp: 2
vp: 2
schedule: zbv
"""
CALIBRATION = """\
gpu: mine
model: tiny
sequence: 64
microbatch_size: 1
precision: bf16
measured_on: a CPU
factors:
  gemm: {factor: 2.0, measured: 0.002, analytic: 0.001}
"""
SETTINGS = {
    "schedule": "1f1b",
    "ranks": 2,
    "microbatches": 3,
    "forward_times": [1.0, 2.0],
    "backward_times": 2.5,
    "p2p_time": 0.25,
    "activation_bytes": "2GiB",
    "memory_limit": "12GiB",
    "time_unit": "ms",
}
LAYERS = [{"forward": 1.0, "backward_input": 2.0, "backward_weight": 0.5, "activation_bytes": 1000, "count": 2}] * 2
CONFIG = "huggingface.json"
"""A model's configuration as model hubs hold it."""


@cache
def honest_files() -> dict[str, bytes]:
    """The files by name; a name with a slash is one in a folder."""
    texts = _of_formats() | _configs() | _of_planning() | _of_runs()
    return {name: text.encode() for name, text in texts.items()}


def put(folder: Path) -> None:
    """Write the files into a folder."""
    for name, content in honest_files().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


def _of_formats() -> dict[str, str]:
    """A file of each format of the registry that can be both written and read."""
    import pipeplan
    from pipeplan.api import all_formats, content_as, contents_of

    result = pipeplan.simulate("zbv", ranks=2, microbatches=3, activation_bytes="1GiB", p2p_time=0.5)
    contents = contents_of(result)
    texts = {}
    for name, each in all_formats().items():
        held = [content for content in ("timeline", "schedule", "costs") if content in each.writers]
        if each.read is not None and held:
            texts[f"{name}{each.ending}"] = content_as(each, contents, (held[0],)).decode()
    order = content_as(all_formats()["json"], contents_of(result.schedule), ("schedule",)).decode()
    return texts | {"order.json": order, "trace.trace.json": content_as(all_formats()["trace"], contents).decode()}


def _configs() -> dict[str, str]:
    import tomli_w

    return {
        "config.yaml": yaml.safe_dump(SETTINGS),
        "config.toml": tomli_w.dumps(SETTINGS),
        "config.json": json.dumps(SETTINGS),
        "layers.json": json.dumps(LAYERS),
        "layers.yaml": yaml.safe_dump(LAYERS),
        "shipped.yaml": (ROOT / "examples" / "profiles" / "gpt-1.5b-24.yaml").read_text(),
    }


def _of_planning() -> dict[str, str]:
    configuration = yaml.safe_load(CONFIGURATION)
    return {
        "model.yaml": MODEL,
        "cluster.yaml": CLUSTER,
        "configuration.yaml": CONFIGURATION,
        "rows.json": json.dumps({"rows": [configuration, {**configuration, "pp": 1, "dp": 4, "vp": 1}]}),
        CONFIG: (ROOT / "tests" / "workload" / "configs" / "gpt2.json").read_text(),
        "calibration.yaml": CALIBRATION,
    }


def _of_runs() -> dict[str, str]:
    """The traces of a run, one a rank, and its timeline as it was measured."""
    import pipeplan

    timeline = pipeplan.simulate("1f1b", ranks=2, microbatches=3).timeline
    return {f"traces/rank{rank}_trace.json": rank_trace(timeline, rank) for rank in range(2)}
