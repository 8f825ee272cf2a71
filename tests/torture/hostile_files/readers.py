"""Which commands read a file of which kind."""

from __future__ import annotations

import random
from collections.abc import Callable

Lines = tuple[str, ...]

_SEARCH = "search zbv -p 2 -m 3 --evaluations 20 --workers 1"
_ORDER = (
    *(
        "check {}",
        "check {} --json",
        "simulate {} --json",
        "simulate {} --no-visualization",
        "explain {} --json",
        "convert {} out.json",
    ),
    *(
        "compare {} 1f1b -p 2 -m 3 --json",
        "diff 1f1b {} --json",
        "diff {} json.json",
        "export {} --to torch-csv",
        "export {} --to megatron",
    ),
    *(
        "convert {} out.csv",
        "convert {} out.svg",
        "convert {} out.html",
        "convert {} out.trace.json",
        "profile --from {} --json",
    ),
    *(
        "search --start {} -p 2 -m 3 --placement v --evaluations 20 --workers 1 --json",
        "simulate {} -o out.html",
        "simulate {} -o out.columns.json",
    ),
    *(
        "check {} --memory-limit 2act --activation-bytes 1GiB",
        "convert {} out.comms.csv --retime",
        "export {} --to zb-nodes",
        "export {} --to trace",
    ),
)
_CONFIG = (
    *(
        "simulate --config {} --json",
        "simulate zbv --config {} --no-visualization",
        "compare 1f1b zbv --config {} --json",
        "check 1f1b --config {}",
    ),
    *(
        "explain --config {} --json",
        "export --config {} --to torchtitan",
        "search --config {} --evaluations 20 --workers 1 --json",
    ),
)
_COSTS = (
    "simulate zbv -p 2 -m 3 --config {} --json",
    "convert {} out.costs.json",
    "check {}",
    "simulate zbv -p 2 -m 3 --config {} -o out.json",
)
_LAYERS = (
    "simulate -p 2 -m 3 --layers {} --json",
    "compare -p 2 -m 3 --layers {} --json",
    "simulate -p 2 -m 3 --layers {} --layers-per-stage 1 3 --json",
)
_PLAN = "plan --global-batch 8 --sequence 64 --seconds 0.3 --workers 1 --json"
_MODEL = (
    f"{_PLAN} --cluster cluster.yaml --model {{}}",
    f"{_PLAN} --cluster h100-sxm:2x1 --model {{}}",
    "estimate configuration.yaml --workers 1 --json",
)
_CLUSTER = (f"{_PLAN} --model model.yaml --cluster {{}}", "estimate configuration.yaml --workers 1 --json")
_ROWS = (
    "estimate {} --workers 1 --json",
    "estimate {} --workers 1 -o out.json",
    "diff 1f1b traces --configuration {} --calibration out.yaml",
)
_CALIBRATION = (
    *(
        "estimate configuration.yaml --calibration {} --workers 1 --json",
        "profile --calibrate configuration.yaml --from traces --calibration {} --json",
    ),
    *(
        "diff 1f1b traces --configuration configuration.yaml --calibration {}",
        f"{_PLAN} --model model.yaml --cluster cluster.yaml --calibration {{}}",
    ),
)
_TRACES = (
    *(
        "diff 1f1b traces --json",
        "explain traces --json",
        "profile --from traces --json",
        "profile --from traces -o out.yaml",
        "simulate traces --json",
    ),
    *("check traces --json", "diff 1f1b {} --json", "explain {}", "convert {} out.json"),
)

_BY_NAME: tuple[tuple[Callable[[str], bool], Lines], ...] = (
    (lambda name: name.startswith("traces/"), _TRACES),
    (lambda name: name.startswith("layers."), _LAYERS),
    (lambda name: name.startswith(("config.", "shipped.")), _CONFIG),
    (lambda name: name.startswith(("model.", "huggingface.")), _MODEL),
    (lambda name: name.startswith("cluster."), _CLUSTER),
    (lambda name: name.startswith("configuration.") or name == "rows.json", _ROWS),
    (lambda name: name.startswith("calibration."), _CALIBRATION),
    (
        lambda name: name.endswith(".store"),
        ("search -p 2 -m 2 --evaluations 20 --workers 1 --searches 2 --json --store {}",),
    ),
    (lambda name: name.endswith(".costs.json"), _COSTS),
)


def line_for(name: str, luck: random.Random) -> list[str]:
    """A command that reads a file of this name, as any order of ops where no other kind is known."""
    lines = next((lines for fits, lines in _BY_NAME if fits(name)), _ORDER)
    return luck.choice(lines).format(name).split()
