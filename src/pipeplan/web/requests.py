"""What the web app can be asked: the settings of the command line as JSON, every number with its range."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from pipeplan.api.commands import given
from pipeplan.costs import Settings

MOST = 1_000_000
"""The largest count that is looked at; whether it can be served is for :mod:`pipeplan.web.weight` to say."""

LARGEST = 1e18
"""The largest time or size: sums of millions of them are still exact enough to be drawn."""

FILE_LIMIT = 8 << 20
"""The most bytes that an uploaded file can have."""

_LONGEST_LIST = 20_000


def _form(value: Any) -> str:
    return "list" if isinstance(value, list) else "text" if isinstance(value, str) else "number"


def _one_or_list(number: Any) -> Any:
    """One number, or a list of them; the error of a wrong value is that of the form it has."""
    several = Annotated[list[number], Field(min_length=1, max_length=_LONGEST_LIST)]
    return Annotated[
        Annotated[number, Tag("number")] | Annotated[several, Tag("list")],
        Discriminator(lambda value: "list" if isinstance(value, list) else "number"),
    ]


Count = Annotated[int, Field(ge=1, le=MOST)]
Time = Annotated[float, Field(gt=0, le=LARGEST)]
Size = Annotated[float, Field(ge=0, le=LARGEST)]
SizeText = Annotated[str, Field(max_length=40)]
_LimitList = Annotated[list[float | SizeText], Field(min_length=1, max_length=_LONGEST_LIST)]
Limit = Annotated[
    Annotated[Time, Tag("number")] | Annotated[SizeText, Tag("text")] | Annotated[_LimitList, Tag("list")],
    Discriminator(_form),
]
Times: Any = _one_or_list(Time)
Sizes: Any = _one_or_list(Size)


class _Strict(BaseModel):
    """Numbers are numbers, and an unknown key is an error."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)


class SettingsIn(_Strict):
    """Shape and costs, by the names of the command line; what is left out has its default."""

    ranks: Count | None = Field(default=None, description="Pipeline ranks, p; 4 where nothing is said.")
    microbatches: Count | None = Field(default=None, description="Microbatches of a step, m; 8 where nothing is said.")
    chunks: Count | None = Field(
        default=None, description="Chunks a rank, v; the schedule's own where nothing is said."
    )
    stages: Count | None = Field(default=None, description="Stages; alone it sets the ranks.")
    forward_times: Times | None = Field(default=None, description="Time of a forward: one number, or one per stage.")
    backward_times: Times | None = Field(default=None, description="Time of a full backward.")
    backward_input_times: Times | None = Field(default=None, description="Its part for the inputs.")
    backward_weight_times: Times | None = Field(default=None, description="Its part for the weights.")
    overlap_times: Times | None = Field(default=None, description="Time of a forward overlapped with a backward.")
    times_per: Literal["rank", "stage"] = Field(default="rank", description="What one number is for.")
    p2p_time: Size = Field(default=0.0, description="Latency of a transfer between ranks.")
    p2p_bytes: Size = Field(default=0.0, description="Bytes of a transfer.")
    p2p_bandwidth: Time | None = Field(default=None, description="Bytes in a unit of time.")
    communication: Literal["edge", "blocking", "contended"] = Field(
        default="edge", description="What a transfer occupies."
    )
    activation_bytes: Sizes | None = Field(default=None, description="Bytes that one microbatch holds.")
    weight_activation_bytes: Sizes | None = Field(default=None, description="The part of it that only W frees.")
    static_bytes: Sizes | None = Field(default=None, description="Parameters, gradients and optimizer state.")
    memory_limit: Limit | None = Field(default=None, description="Bytes, '12GiB' or '8act'; one, or one per rank.")
    group_size: Count | None = Field(default=None, description="Microbatches in a group of an interleaved schedule.")
    slices: Count | None = Field(default=None, description="Slices of a microbatch's sequence.")
    variant: Annotated[str, Field(max_length=40)] | None = Field(
        default=None, description="Of several rules of one name."
    )
    pad_times: bool = Field(default=False, description="Repeat the last value of a list, or cut it, to fit.")
    time_unit: Annotated[str, Field(max_length=12)] = Field(
        default="", description="For axes and tables, such as 'us'."
    )

    def settings(self) -> Settings:
        """The same for the workbench."""
        return given(self.model_dump(exclude_unset=True))


Name = Annotated[str, Field(min_length=1, max_length=80)]


class FileIn(_Strict):
    """A file that somebody dropped: a schedule as PyTorch's CSV or pipeplan's JSON."""

    name: Name = Field(description="With its ending, .csv or .json.")
    text: Annotated[str, Field(max_length=FILE_LIMIT)]


class Question(_Strict):
    """Schedules on the same ranks and costs."""

    settings: SettingsIn = SettingsIn()
    schedules: list[Name] = Field(
        default=[], max_length=64, description="Names; none, and no files: all that there are."
    )
    files: list[FileIn] = Field(default=[], max_length=8, description="Schedules of one's own beside them.")


class CompareIn(Question):
    """Which schedules to compare, and which of them to draw."""

    draw: list[Name] | None = Field(
        default=None, max_length=8, description="Names; the best one where nothing is said."
    )
    reasons: bool = Field(default=False, description="Whether the timeline holds why ranks idle.")


class ExplainIn(Question):
    """Which schedule to explain: the only one of ``schedules`` and ``files``."""


Picture = Literal["png", "svg", "pdf", "html", "json"]
"""What can hold several schedules."""

Export = Literal[
    "torch-csv",
    "torch-csv-comms",
    "zb-nodes",
    "trace",
    "timeline-csv",
    "costs",
    "torchtitan",
    "megatron",
]
"""Other tools' formats, each of one schedule; see ``pipeplan export``."""


class DownloadIn(Question):
    """What to download: one schedule, or for pictures and JSON several."""

    format: Picture | Export
