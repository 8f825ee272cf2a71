"""Makes the corpus of a version, once: ``python -m tests.corpus.make`` before it is released. Needs PyTorch.

What it makes is frozen: a file that is there is not made again, and ``SHA256SUMS`` says if one was edited. A format, a
command or a schema that comes later gets its file in the corpus of the version that brings it.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pipeplan
from pipeplan.answers.schemas import every, schema
from pipeplan.cli import main
from tests.corpus.named import named
from tests.corpus.reading import figures
from tests.extensions.training.traces.traces import traces

HERE = Path(__file__).parent
SHAPE = ("-p", "2", "-m", "2")
UNEVEN = (*SHAPE, "-f", "1", "2", "-bw", "2.5", "3", "--p2p-time", "0.25", "--time-unit", "ms")

ANSWERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "simulate": ("pipeplan-result", ("simulate", "zbv", *SHAPE, "--activation-bytes", "1MiB", "--step-time", "0.5")),
    "compare": ("answer-compare", ("compare", *SHAPE, "--memory-limit", "2act")),
    "explain": ("answer-explain", ("explain", "1f1b", *UNEVEN)),
    "search": ("pipeplan-result", ("search", *SHAPE, "--evaluations", "50")),
    "pareto": ("answer-pareto", ("search", *SHAPE, "--evaluations", "50", "--pareto")),
    "schedules": ("answer-schedules", ("schedules",)),
    "schedules-one": ("answer-schedules", ("schedules", "zbv")),
    "machines": ("answer-machines", ("schedules", "--machines")),
    "costs": ("answer-costs", ("list", "costs")),
    "models": ("answer-models", ("plan", "--models")),
    "gpus": ("answer-gpus", ("plan", "--gpus")),
    "check": ("answer-check", ("check", "files/schedule.json")),
    "check-invalid": ("answer-check", ("check", "files/invalid.csv")),
    "diff": ("answer-diff", ("diff", "1f1b", "files/measured.json", "--time-unit", "ms")),
    "estimate": ("answer-estimate", ("estimate", "files/configurations.json")),
    "plan": (
        "answer-plan",
        ("plan", "--model", "gpt2", "--cluster", "a100-40gb:2x1", "--global-batch", "4", *("--sequence", "512")),
    ),
    "profile": ("answer-profile", ("profile", "--from", "files/run")),
    "review": ("answer-review", ("review", "files/launch.sh", "--model", "gpt2", "--cluster", "a100-40gb:2x1")),
    "review-rules": ("answer-review-rules", ("review", "--rules")),
    "run": ("answer-run", ("run", "1f1b", *SHAPE, "--steps", "2", "--verify", "-o", "files/measured.json")),
}
"""Each answer's schema, and the command that gives it with ``--json``, in the folder of the version."""

CONFIGS = {
    "config.yaml": "schedule: 1f1b\nranks: 2\nmicrobatches: 4\nforward_times: [1, 2]\nbackward_times: 2.5\np2p_time: 0.25\n"
    "memory_limit: 4act\noutput: picture.png\n",
    "config.toml": 'schedule = "zb-h1"\nranks = 2\nmicrobatches = 4\nforward_times = 1.5\nactivation_bytes = "2MiB"\n',
    "config.json": '{"schedule": "gpipe", "ranks": 3, "microbatches": 3, "recompute": "all", "no_visualization": true}\n',
    "older.yaml": "num_stages: 4\nnum_batches: 8\nforward_times: [1, 1, 1, 1]\nbackward_times: [2, 2, 2, 2]\np2p_time: 0\n"
    "output_file: pipeline.png\n",
}
LAYERS = """layers:
  - {forward: 1, backward_input: 2, backward_weight: 1, count: 3}
  - {forward: 1.5, backward_input: 1, backward_weight: 2, activation_bytes: 1024}
"""
CALIBRATION = (
    'gpu: "h100-sxm"\nmodel: "llama3-8b"\nsequence: 4096\nmicrobatch_size: 1\nprecision: "bf16"\nmeasured_on: "a GPU"\n'
    'factors:\n  gemm: {"factor": 1.1, "measured": 1.1, "analytic": 1.0, "source": "a layer"}\n  optimizer: 1.3\n'
)
LAUNCH = (
    "torchrun --nproc-per-node 1 --nnodes 2 pretrain_gpt.py --num-layers 12 --pipeline-model-parallel-size 2 \\\n"
    "  --micro-batch-size 1 --global-batch-size 8 --seq-length 512 --decoder-first-pipeline-num-layers 9 --bf16\n"
)
CONFIGURATION = {"model": "llama3-8b", "cluster": "h100-sxm:8x1", "global_batch": 32, "sequence": 4096, "dp": 8}


def make(folder: Path) -> None:
    """Write all files of a version that are not there."""
    files = folder / "files"
    files.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(folder):
        for name, (_, command) in ANSWERS.items():
            if name == "run":
                _answer(name, command)
        holds = dict(_files(files))
        for name, (_, command) in ANSWERS.items():
            _answer(name, command)
    _once(
        folder / "answers.json",
        _json({name: {"schema": one, "command": list(line)} for name, (one, line) in ANSWERS.items()}),
    )
    with tempfile.TemporaryDirectory() as space:
        said = {
            name: {"holds": what, "figures": figures(files / name, what, Path(space))} for name, what in holds.items()
        }
    _once(folder / "files.json", _json(said))
    for name in every():
        _once(folder / "schemas" / f"{name}.json", _json(schema(name)))
    _once(folder / "named.json", _json(named()))
    sums = "".join(f"{sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in frozen(folder))
    _once(folder / "SHA256SUMS", sums)


def frozen(folder: Path) -> list[Path]:
    """The files of a version whose sums are kept."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "SHA256SUMS")


def _answer(name: str, command: tuple[str, ...]) -> None:
    path = Path("answers", f"{name}.json")
    if path.exists():
        return
    print(" ".join(command), file=sys.stderr)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = main([*command, "--json"])
    assert code == (1 if name in ("check-invalid", "review") else 0), name
    _once(path, _json(json.loads(said.getvalue())))


def _files(files: Path) -> Iterator[tuple[str, str]]:
    """Writes the files; gives the name of each and what it holds."""
    result = pipeplan.simulate(
        "zbv", ranks=2, microbatches=2, forward_times=[1, 2, 1, 1.5], backward_times=3, p2p_time=0.25, time_unit="ms"
    )
    for name in ("timeline.json", "timeline.timeline.csv", "timeline.columns.json"):
        result.save(files / name)
        yield name, "order"
    for name in ("schedule.json", "schedule.csv", "schedule.comms.csv", "schedule.rows.txt"):
        pipeplan.save(result.schedule, files / name)
        yield name, "order"
    copies = pipeplan.simulate("chimera", ranks=2, microbatches=2).schedule
    pipeplan.save(copies, files / "copies.json")
    yield "copies.json", "order"
    yield "measured.json", "order"
    (files / "invalid.csv").write_text("0F0,0B0\n1B0,1F0\n")
    result.save(files / "costs.costs.json")
    yield "costs.costs.json", "config"
    for name, text in traces(result.timeline).items():
        _once(files / "run" / name, text)
    alone = pipeplan.simulate("1f1b", ranks=1, microbatches=2, forward_times=2, backward_times=3, time_unit="ms")
    ((_, text),) = traces(alone.timeline).items()
    _once(files / "alone.json", text)
    yield "alone.json", "order"
    yield "run", "run"
    for name, text in CONFIGS.items():
        _once(files / name, text)
        yield name, "config"
    _once(files / "launch.sh", LAUNCH)
    _once(files / "layers.yaml", LAYERS)
    yield "layers.yaml", "layers"
    _once(files / "calibration.yaml", CALIBRATION)
    yield "calibration.yaml", "calibration"
    rows: list[Any] = [CONFIGURATION | {"id": "fits"}, CONFIGURATION | {"id": "cannot be", "tp": 3}]
    _once(files / "configurations.json", _json({"rows": rows}))
    yield "configurations.json", "configuration"
    if not (files / "search.store").exists():
        pipeplan.sweep("1f1b", ranks=2, microbatches=[2, 4], store=files / "search.store")
    yield "search.store", "store"


def _json(document: Any) -> str:
    return json.dumps(document, indent=1) + "\n"


def _once(path: Path, text: str) -> None:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    make(HERE / ".".join(pipeplan.__version__.split(".")[:2]))
