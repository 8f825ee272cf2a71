"""Hostile values for options, arguments and files: out of range, of the wrong type, or harmful to terminals and parsers."""

from __future__ import annotations

import random


def _words(*lines: str) -> list[str]:
    return " ".join(lines).split()


NUMBERS = [
    *_words(
        "0 -0 -1 +2 1.5 0.1 1e2 1_0 0x10 010 2,3 2147483648 9223372036854775807 9223372036854775808 20000001 5e-324",
        "1e-308 1e-30 1e30 1e308 1.8e308 1e309 -1e308 inf -inf nan NaN Infinity 1e e5 1.5.2 None true two",
    ),
    *("", " 2", "1 2", "٣", "²", "\udcff", "1" + "0" * 30, "1" * 5000, "9" * 400),
]
SIZES = _words(
    "12GiB 1e400B 1e308GiB -1GiB 0B nanGiB GiB 8act -8act 0act nanact 1e308act 1Gib 9999999YiB B act 12GiB,8act"
)
TEXTS = [
    *_words(
        "- -- --json -x @config.yaml ~ $(touch_x) ; | * null None {} [] 0-3 3-0 0-999999999 0,0 all,none a=b = a= pp=2=2",
        "tp=0 pp=nan tp=999999999999 schedule=zbw sys:exit os:abort x: :x h100-sxm:0x1 h100-sxm:8 h100-sxm:1.5x2 0,1,2",
        "zbv 1f1b ../../x /dev/null 0F0 999F0 0F99999999 0Z0 0F-1 (0F0;0B0) 2020-01-01 $\\frac{ %s%n {0} ]]> </svg>",
    ),
    *("", " ", "\n", "a\nb", "\x1b[31mred\x1b[0m", "\x07", "\x9b31m", "\u202eabc", "\u2028", "\ufeff", "\udcff"),
    *("[bold]x[/bold]", "[/x]", "<script>alert(1)</script>", "x" * 5000, "e" + "\u0301" * 200, "ﷺ", "😀" * 20),
]
PATHS = [
    *_words(
        ". ./ folder folder/ order.json/ missing missing/x.json loop.json empty.json empty.csv empty.yaml -- -.json",
        "x.JSON x.json.gz x. x.exe .json json order.json config.yaml traces link.json json.json http://127.0.0.1:1/x.json",
    ),
    *("", "x" * 256 + ".json", "\udcff.json", "new\nline.json", "\x1b[31m.json", "\u202ex.json", " order.json"),
]
OUTPUTS = _words(
    "x.png x.svg x.pdf x.html x.txt x.json x.csv x.trace.json x.rows.txt x.comms.csv x.zb.txt x.yaml x.megatron.sh",
    "x.torchtitan.sh x.columns.json x.timeline.csv x.costs.json folder/x.json x.PNG é.svg [b].html",
)
CHOICES = _words(
    "edge contended blocking linear loop v wave auto megatron torchtitan light dark rank stage ms all split"
)
SMALL = {
    **{"seconds": 0.4, "evaluations": 60, "steps": 1, "warmup": 1, "repeats": 1, "points": 3},
    **{"workers": 1, "threads": 2, "port": 0, "deadline": 1e308, "timeout": 1e308},
}
"""The largest honest value of an option, by name: a larger one makes an answer slow, which is no fault."""

VALUES = (*NUMBERS, *SIZES, *TEXTS, *PATHS, *OUTPUTS, *CHOICES, *("1", "2", "3", "4", "0.5", "1,2", "1,2,3,4", "maybe"))
"""Values for an option of the command line."""

NODES: tuple[object, ...] = (
    *(None, True, -1, 0, 1.5, -0.0, 1e308, 2**63, 10**400, float("nan"), [], {}, [[]], [1, "x"], {"": 1}),
    *TEXTS,
)
"""Values for a key of a document."""


def hostile_value(names: tuple[str, ...], luck: random.Random) -> str:
    """Return a value for an option with these names that asks for little work, or is refused."""
    most = next((SMALL[name.strip("-")] for name in names if name.strip("-") in SMALL), None)
    while True:
        value = luck.choice(VALUES)
        try:
            if most is None or not most < float(value) < 1e18:
                return value
        except ValueError:
            return value
