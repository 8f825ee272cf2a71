"""The numbers of what is done with a schedule: how long a search may take, how many steps a run trains.

The command line's options and the checks of Python's arguments derive from these tables, so that a number that cannot be is
refused before any work is done, and in the same words.
"""

from __future__ import annotations

from pipeplan.costs.setting import COUNT, Range, Setting, table_of

MOST_SECONDS = 31_536_000
"""A year: no clock of a library overflows with it."""

SEED = Range(0, most=2**53 - 1)
"""Every number that any reader of JSON holds exactly."""

WORKERS = Range(1, most=1_024)
"""More processes or threads than that no machine of this kind has cores for."""

STEPS = Range(1, most=1_000_000)

SEARCH_SETTINGS = table_of(
    Setting(
        name="seconds", kind="number", title="Seconds", group="work", help="Budget in seconds.", default="10",
        range=Range(0, most=MOST_SECONDS),
    ),
    Setting(
        name="evaluations", kind="count", title="Schedules tried", group="work", range=Range(0, most=10**15),
        help="Budget in schedules tried: the same seed then gives the same answer.",
    ),
    Setting(
        name="seed", kind="count", title="Seed", group="work", help="Seed of the random numbers.", default="0", range=SEED
    ),
    Setting(
        name="workers", kind="count", title="Workers", group="work", default="as many as there are cores", range=WORKERS,
        help="Threads, or processes for several searches.",
    ),
    Setting(
        name="searches", kind="count", title="Searches", group="work", default="1; 8 with --dask",
        help="Independent searches, each with the whole budget and a seed of its own.", range=Range(1, most=10_000),
    ),
    Setting(
        name="rounds", kind="count", title="Rounds", group="work", default="1", range=Range(1, most=1_000),
        help="In how many parts: after each, all searches go on from the best that any has found.",
    ),
    Setting(
        name="jitter", kind="number", title="Jitter", group="work", range=Range(0, most=10),
        help="Search for the least p95 when op times vary by this standard deviation, as 0.05.",
    ),
    Setting(
        name="slow_rank", kind="number", title="Slow rank", group="work", range=Range(0, most=10),
        help="Search for the least worst case when any one rank is slower by this share, as 0.05.",
    ),
    Setting(
        name="points", kind="count", title="Points", group="work", help="How many limits of the trade-off.", default="8",
        range=Range(2, most=1_000),
    ),
    Setting(
        name="most", kind="count", title="Longest pattern", group="work", default="4", range=COUNT,
        help="Up to how many microbatches a pattern takes until it repeats.",
    ),
)  # fmt: skip
"""What searches, fronts and steady states take beside shape and costs, by name."""

RUN_SETTINGS = table_of(
    Setting(name="steps", kind="count", title="Steps", group="work", help="Timed steps.", default="5", range=STEPS),
    Setting(
        name="warmup", kind="count", title="Warm-up", group="work", help="Untimed steps before them.", default="1",
        range=Range(0, most=1_000_000),
    ),
    Setting(
        name="repeats", kind="count", title="Rounds", group="work", help="Measured rounds.", default="15", range=STEPS
    ),
    Setting(
        name="layout", kind="layout", title="Layout", group="work", help="Layers of each stage.", default="even by weight"
    ),
    Setting(
        name="threads", kind="count", title="Threads", group="work", help="CPU threads of each rank.", default="1",
        range=WORKERS,
    ),
    Setting(
        name="seed", kind="count", title="Seed", group="work", help="Of weights and data.", default="0", range=SEED
    ),
    Setting(
        name="timeout", kind="number", title="Timeout", group="work", default="120",
        help="Seconds without progress after which a rank counts as hung.",
        range=Range(0, open=True, most=MOST_SECONDS),
    ),
    Setting(
        name="sequence", kind="count", title="Sequence", group="work", help="Tokens in a sequence.", range=COUNT,
        default="what the model was trained on, at most 8192",
    ),
    Setting(
        name="microbatch_size", kind="count", title="Microbatch", group="work", help="Sequences in a microbatch.",
        default="1", range=COUNT,
    ),
)  # fmt: skip
"""What runs and profiles take beside shape and costs, by name."""
