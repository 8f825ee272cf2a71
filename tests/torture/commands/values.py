"""Values that nobody means, by the kind of what they are given to."""

from __future__ import annotations

import random

from tests.torture.commands.options import Option

COUNTS = (
    *(
        "0",
        "-1",
        "-0",
        "+2",
        "1.5",
        "1e2",
        "2.0",
        "1_0",
        "0x10",
        "010",
        " 2",
        "2 ",
        "٣",
        "²",
        "½",
        "2,3",
        "1 2",
        "",
        "--",
    ),
    *(
        "2147483648",
        "4294967297",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "-9223372036854775809",
    ),
    *("20000001", "1" + "0" * 30, "1" + "0" * 5000, "inf", "nan", "None", "true", "\udcff", "two"),
)
NUMBERS = (
    *(
        "0",
        "-0",
        "-0.0",
        "-1",
        "1e-400",
        "5e-324",
        "1e-308",
        "1e-30",
        "1e30",
        "1e150",
        "1e308",
        "1.8e308",
        "1e309",
        "-1e308",
    ),
    *(
        "inf",
        "-inf",
        "Infinity",
        "nan",
        "-nan",
        "NaN",
        "1e",
        "e5",
        "1.5.2",
        "1,5",
        ".",
        "1_000.5",
        "0x1p3",
        "٣.٥",
        "",
        " ",
        "3 ",
    ),
    *("0.1", "1e-9", "1/3", "1e400", "9" * 400, "1" * 5000, "None", "\udcff", "$((1+1))"),
)
SIZES = (
    *(
        "12GiB",
        "1e400B",
        "1e308GiB",
        "-1GiB",
        "0B",
        "nanGiB",
        "infB",
        "GiB",
        "1 GiB",
        "1.5.5GB",
        "8act",
        "-8act",
        "nanact",
    ),
    *(
        "0act",
        "1e308act",
        "1e-320act",
        "1Gib",
        "1EiB",
        "9999999YiB",
        "1GiB2",
        "B",
        "act",
        "1,2",
        "12GiB,8act",
        "1e-400GiB",
    ),
)
TEXTS = (
    *(
        "",
        " ",
        "\t",
        "\n",
        "a\nb",
        "a\r\nb",
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07",
        "\x07",
        "\x7f",
        "\x9b31m",
        "\u202eabc",
        "\u2066a",
    ),
    *(
        "\u2028",
        "\ufeff",
        "\udcff",
        "\udc80a\udcff",
        "e" + "\u0301" * 200,
        "👩‍👩‍👧‍👦" * 20,
        "ﷺ",
        "ｆｕｌｌ",
        "ß" * 300,
        "x" * 5000,
    ),
    *(
        "[bold]x[/bold]",
        "[/x]",
        "[link=x]y[/]",
        "<script>alert(1)</script>",
        "</svg>&#0;",
        "]]>",
        "$x^2$",
        "$\\frac{",
        "\\",
        "%s%n",
        "{0}",
    ),
    *(
        "-",
        "--",
        "--json",
        "-x",
        "@config.yaml",
        "~",
        "~root",
        "$(touch x)",
        "`touch x`",
        ";",
        "|",
        "*",
        "?",
        "null",
        "None",
        "{}",
        "[]",
    ),
    *(
        "0-3",
        "3-0",
        "0-999999999",
        "-1",
        "0,0",
        "all,none",
        "all",
        "a=b",
        "=",
        "a=",
        "=b",
        "pp=2=2",
        "tp=0",
        "tp=-1",
        "pp=nan",
        "tp=1e30",
    ),
    *(
        "tp=999999999999",
        "schedule=zbw",
        "recompute=x",
        "sys:exit",
        "os:abort",
        "x:",
        ":x",
        "module:function",
        "h100-sxm:0x1",
        "h100-sxm:1x0",
    ),
    *(
        "h100-sxm:-1x2",
        "h100-sxm:8",
        "h100-sxm:99999999999x99999999999",
        "h100-sxm:1.5x2",
        "0,1,1,0",
        "0,1,2",
        "0,",
        "0,-1",
        "1,0",
        "V",
        "wave ",
    ),
)
PATHS = (
    *(
        "",
        ".",
        "./",
        "/",
        "folder",
        "folder/",
        "order.json/",
        "missing",
        "missing/x.json",
        "order.json/x.json",
        "loop",
        "loop.json",
    ),
    *(
        "unreadable.json",
        "empty.json",
        "empty.csv",
        "empty.yaml",
        "x" * 255,
        "x" * 251 + ".json",
        "x" * 256 + ".json",
        "a/" * 3000 + "x.json",
    ),
    *(
        "\udcff.json",
        "new\nline.json",
        "\x1b[31m.json",
        "\u202ex.json",
        "-",
        "--",
        "-.json",
        "--json",
        "~",
        "~/x.json",
        "@order.json",
    ),
    *(
        "*.json",
        "$(x).json",
        "<b>.json",
        "[red].csv",
        ".json",
        "json",
        ".csv",
        "x.JSON",
        "x.json.gz",
        "x.csv.gz",
        "x.",
        "x.exe",
        "x.trace.json",
    ),
    *(
        "link.json",
        "dangling.json",
        "order.json",
        "config.yaml",
        "traces",
        "order.JSON",
        "./order.json",
        "folder/../order.json",
        "json.json",
    ),
    *("file:order.json", "http://127.0.0.1:1/x.json", "order.json\n", " order.json", "order.json ", "C:\\x.json"),
)
OUTPUTS = (
    *(
        "x.png",
        "x.svg",
        "x.pdf",
        "x.html",
        "x.txt",
        "x.json",
        "x.csv",
        "x.trace.json",
        "x.rows.txt",
        "x.comms.csv",
        "x.zb.txt",
        "x.yaml",
    ),
    *(
        "x.megatron.txt",
        "x.torchtitan.sh",
        "x.torchtitan.py",
        "x.columns.json",
        "x.timeline.csv",
        "x.costs.json",
        "x.sh",
        "x.searched.csv",
    ),
    *("folder/x.json", "x.PNG", "é.svg", "a b.html", "<i>.svg", "[b].html", "\u202e.svg"),
)
"""Names to write to."""

HOSTS = (
    "",
    "127.0.0.1",
    "127.0.0.2",
    "localhost",
    "::1",
    "[::1]",
    "127.1",
    "127.0.0.1:80",
    "\x1b[31m",
    "a b",
    "x" * 300,
    "../x",
)
"""Loopback, and what is no name at all: no test listens elsewhere, or asks who that is."""

SCHEDULERS = (
    "",
    "127.0.0.1:1",
    "tcp://127.0.0.1:1",
    "127.0.0.1",
    "127.0.0.1:99999",
    "127.0.0.1:-1",
    "x://127.0.0.1:1",
    "tcp://",
    ":1",
)

_LEAST, _MOST = -(10.0**18), 10.0**17
"""Between them a count is tried only where it is small: what lies beyond is refused at once."""

SMALL = {
    **{
        "--seconds": 0.4,
        "--evaluations": 60,
        "--steps": 1,
        "--warmup": 1,
        "--repeats": 1,
        "--points": 3,
        "--searches": 2,
    },
    **{"--rounds": 2, "--workers": 2, "--threads": 2, "--port": 0, "--deadline": 1e308, "--timeout": 1e308},
}
"""The most that an option may honestly ask for: beyond, an answer takes long, or the machine is what is attacked."""

_SHAPE = 6
"""The most ranks, chunks, microbatches or slices of a case, but for one of them."""


def hostile(option: Option, luck: random.Random) -> str:
    """A value for an option: mostly one that nobody means."""
    while True:
        value = _value(option, luck)
        if _is_bounded(option, value):
            return value


def _value(option: Option, luck: random.Random) -> str:
    if "--host" in option.names or "--allow-host" in option.names:
        return luck.choice(HOSTS)
    if "--dask" in option.names:
        return luck.choice(SCHEDULERS)
    if option.choices and luck.random() < 0.5:
        return luck.choice(option.choices)
    if option.kind == "path":
        if {"--output", "--trace", "--store", "--calibration"}.isdisjoint(option.names):
            return luck.choice((*PATHS, "pipe.json"))
        return luck.choice(OUTPUTS if luck.random() < 0.6 else PATHS)
    honest = {"int": "12346", "float": ("1", "0.5", "2", "1,2", "1,2,3,4"), "bool": ("true", "false")}
    if option.kind in honest and luck.random() < 0.35:
        return luck.choice(honest[option.kind])
    pool = {"int": COUNTS, "float": (*NUMBERS, *SIZES), "bool": ("", "maybe", "2"), "text": (*TEXTS, *SIZES)}[
        option.kind
    ]
    if option.many and luck.random() < 0.3:
        return ",".join(luck.choice(pool) for _ in range(luck.randint(2, 5)))
    return luck.choice(pool)


def _is_bounded(option: Option, value: str) -> bool:
    """Whether what a value asks for is refused, or small."""
    most = next((SMALL[name] for name in option.names if name in SMALL), None)
    if most is None:
        return True
    try:
        number = float(value)
    except ValueError:
        return True
    return number <= most or (option.kind == "int" and number > _MOST) or number != number
