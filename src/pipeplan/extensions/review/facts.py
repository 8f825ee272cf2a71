"""Contents of a configuration: its settings with their places, and what follows from them.

A rule reads settings as attributes. A setting that the configuration leaves out raises :class:`NotSet`, and the rule is
then not judged: what a configuration does not say is not a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import gcd, prod
from typing import TYPE_CHECKING, Any, TypeVar

from pipeplan.extensions.review.layouts import letters_of, part_letters
from pipeplan.extensions.review.settings import SETTINGS, UNKNOWN
from pipeplan.foundation.errors import PipeplanError
from pipeplan.trainers import TrainerKind

if TYPE_CHECKING:
    from pipeplan.extensions.planning import Configuration
    from pipeplan.extensions.planning.hardware import Cluster
    from pipeplan.extensions.planning.workload import ModelShape


LONGEST_NAME = 200
"""Maximum number of characters of a name that a review repeats."""


class NotSet(Exception):
    """A rule needs a setting that the configuration leaves out."""


Read = TypeVar("Read")


def or_none(read: Callable[[], Read]) -> Read | None:
    """Return what a function reads of a configuration; None if it needs a setting that is left out."""
    try:
        return read()
    except NotSet:
        return None


def decided(condition: Callable[[ReviewFacts], Any], facts: ReviewFacts) -> Any:
    """Return what a condition says of a configuration, whether a switch that it leaves out is on or off.

    Raises
    ------
    NotSet
        If the switch decides, or another setting is missing.
    """
    try:
        return condition(facts)
    except NotSet as missing:
        name = str(missing)
        if name not in SETTINGS or SETTINGS[name].kind != "flag" or facts.has(name):
            raise
        try:
            decides = any(decided(condition, facts.changed({name: value})) for value in (False, True))
        except NotSet:
            decides = True
        if decides:
            raise missing from None
        return False


@dataclass(frozen=True, slots=True)
class SettingPlace:
    """Place of a setting: file, line (0: none) and key as written; ``start`` and ``end`` are the value's columns."""

    file: str = ""
    line: int = 0
    key: str = ""
    start: int = -1
    end: int = -1

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return " ".join(filter(None, (where, self.key[:LONGEST_NAME])))


@dataclass(frozen=True, slots=True)
class Entry:
    """Value of a setting and its place; ``assumed`` marks a trainer's default or a property of the named model."""

    value: Any
    place: SettingPlace = field(default_factory=SettingPlace)
    assumed: bool = False


_LOOPED = ("interleaved", "loop", "zbv", "dualpipe", "multi", "bfs")


@dataclass(frozen=True, eq=False)
class ReviewFacts:
    """Settings of a configuration.

    Attributes
    ----------
    trainer
        Trainer that runs the configuration.
    settings
        Settings by name.
    release
        Release of the trainer; empty if unknown.
    name
        Name of the configuration in messages.
    shape, cluster
        Model and cluster of the command line, in place of those that the configuration names.
    own
        Model, cluster and configuration of one of pipeplan's own files, which an estimate takes as they are.
    unread
        Places of keys of parallel training that are not read, such as flags of a fork: rules of their subject are silent.
    """

    trainer: TrainerKind
    settings: Mapping[str, Entry]
    release: str = ""
    name: str = ""
    shape: ModelShape | None = None
    cluster: Cluster | None = None
    own: tuple[ModelShape, Cluster, Configuration] | None = None
    unread: tuple[SettingPlace, ...] = ()

    def __getattr__(self, name: str) -> Any:
        """Return the value of a setting. Raises NotSet if it is left out, and AttributeError for an unknown setting."""
        if name not in SETTINGS:
            raise AttributeError(name)
        value = self.get(name)
        if value is UNKNOWN:
            raise NotSet(name)
        return value

    def get(self, name: str, default: Any = UNKNOWN) -> Any:
        """Return the value of a setting, or a default if it is left out or is a count below 1."""
        entry = self.settings.get(name)
        if entry is None or entry.value is UNKNOWN:
            return default
        if SETTINGS[name].kind == "count" and isinstance(entry.value, int) and entry.value < 1:
            return default
        return entry.value

    def either(self, *names: str) -> Any:
        """Return the first of these settings with a value that is true; else the last one's, None if it is left out."""
        values = [self.get(name, None) for name in names]
        return next((value for value in values if value), values[-1])

    def has(self, *names: str) -> bool:
        """Return True if the configuration has all of these settings."""
        return all(self.get(name) is not UNKNOWN for name in names)

    def lacks(self, *names: str) -> bool:
        """Return False if the configuration has all of these settings. Raises NotSet for the first that it leaves out."""
        return not all((getattr(self, name), True) for name in names)

    def place_of(self, names: Iterable[str]) -> SettingPlace:
        """Return the place of the first of these settings that the file itself has."""
        entries = [self.settings[name] for name in names if name in self.settings]
        return next((one.place for one in entries if not one.assumed), entries[0].place if entries else SettingPlace())

    def changed(self, changes: Mapping[str, Any]) -> ReviewFacts:
        """Return the configuration with other values of some settings."""
        places = {name: self.settings[name].place if name in self.settings else SettingPlace() for name in changes}
        changed = {name: Entry(value, places[name], assumed=value is None) for name, value in changes.items()}
        return replace(self, settings={**self.settings, **changed})

    @property
    def trains(self) -> bool:
        """True unless the configuration is of a job that only generates text, evaluates or converts a model."""
        return self.get("phase", "train") not in ("inference", "eval", "export")

    @property
    def dense(self) -> bool:
        """True if the model is known to have no experts."""
        return self.get("experts", 1) is None

    # Degrees

    @property
    def world(self) -> int:
        """Number of GPUs. Raises NotSet if unknown."""
        if self.has("gpus"):
            return int(self.gpus)
        return int(self.nodes) * int(self.gpus_per_node)

    @property
    def model_parallel(self) -> int:
        """GPUs of one replica as far as the configuration says: degrees that it leaves out count as 1."""
        return prod(self.get(name, 1) or 1 for name in ("tp", "pp", "cp"))

    @property
    def expert_tensor(self) -> int:
        """Expert tensor degree; Megatron's default is the tensor degree. Raises NotSet if unknown."""
        degree = self.etp
        return int(self.tp if degree is None else degree)

    @property
    def replicas(self) -> int:
        """Number of data-parallel replicas, by which batches are divided. Raises NotSet if unknown."""
        if self.has("dp"):
            return int(self.dp)
        needed = self.tp * self.pp * self.cp
        if self.world % needed:
            raise NotSet("dp")
        return int(self.world // needed)

    @property
    def replica_step(self) -> int:
        """Number of which that of replicas is a multiple: itself, or what experts spread over all but the pipeline need."""
        try:
            return self.replicas
        except NotSet:
            return int(self.ep // gcd(self.ep, self.tp * self.cp))

    @property
    def chunks(self) -> int:
        """Chunks per rank, at least 1: as set, or as the layout or the layers per chunk imply. Raises NotSet if unknown."""
        if self.get("vpp", None):
            return int(self.vpp)
        if self.get("layout", None):
            stages, ranks = len(self.letters), self.pp
            return stages // ranks if stages % ranks == 0 else 1
        if self.get("layers_per_virtual_stage", None):
            return max(1, int(self.counted_layers // self.pp // self.layers_per_virtual_stage))
        if self.get("vpp", None) is None and not self.has("vpp"):
            raise NotSet("vpp")
        return 1

    @property
    def count(self) -> int:
        """Microbatches per step and replica. Raises NotSet if unknown."""
        if self.has("microbatches"):
            return int(self.microbatches)
        if self.has("local_batch"):
            return int(self.local_batch // self.get("micro_batch", 1))
        share = self.micro_batch * self.replicas
        if self.global_batch % share:
            raise NotSet("microbatches")
        return int(self.global_batch // share)

    @property
    def eval_count(self) -> int:
        """Microbatches per evaluation step and replica. Raises NotSet if unknown."""
        share = (self.get("eval_micro_batch", None) or self.micro_batch) * self.replicas
        return int((self.get("eval_global_batch", None) or self.global_batch) // share)

    # Layers

    @property
    def counted_layers(self) -> int:
        """Layers that Megatron splits over stages: embedding and loss included if they are accounted for."""
        return int(self.layers + bool(self.get("account_embedding", False)) + bool(self.get("account_loss", False)))

    @property
    def mtp(self) -> int:
        """Number of MTP layers; 0 if there are none or the configuration does not say."""
        pattern = str(self.get("hybrid_pattern", None) or "")
        return pattern.count("/") if pattern else int(self.get("mtp_layers", 0) or 0)

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """Letters of each stage of the layout. Raises NotSet without a layout that can be read."""
        if not self.layout:
            raise NotSet("layout")
        try:
            return letters_of(self.layout)
        except PipeplanError:
            raise NotSet("layout") from None

    @property
    def layout_fault(self) -> str:
        """Reason why the layout cannot be read; empty if it can."""
        try:
            letters_of(self.layout or "")
        except PipeplanError as error:
            return str(error)
        return ""

    @property
    def layout_stages(self) -> int:
        """Number of stages of the layout."""
        return len(self.letters)

    @property
    def layout_layers(self) -> int:
        """Transformer layers in the layout."""
        return sum(stage.count("t") for stage in self.letters)

    @property
    def layout_mtp(self) -> int:
        """MTP layers in the layout."""
        return sum(stage.count("m") for stage in self.letters)

    @property
    def part_letters(self) -> tuple[str, ...]:
        """Letters of each of torchtitan's model parts; empty if they are not set. Raises NotSet if they are unknown."""
        if isinstance(self.modules_per_part, str):
            raise NotSet("modules_per_part")
        return part_letters(self.modules_per_part or ())

    @property
    def middle_layers(self) -> int:
        """Layers besides those of the first and the last rank, where these are set."""
        return int(self.layers - (self.get("first_stage_layers", 0) or 0) - (self.get("last_stage_layers", 0) or 0))

    @property
    def middle_ranks(self) -> int:
        """Pipeline ranks besides the first and the last, where their layers are set."""
        edges = ("first_stage_layers", "last_stage_layers")
        return int(self.pp - sum(bool(self.get(name, None)) for name in edges))

    @property
    def uneven(self) -> bool:
        """True if the layers of the first or the last rank are set."""
        return bool(self.get("first_stage_layers", None) or self.get("last_stage_layers", None))

    # Schedules of PyTorch

    @property
    def looped(self) -> bool:
        """True if the schedule puts several stages on a rank. Raises NotSet if unknown."""
        return any(word in str(self.schedule).lower() for word in _LOOPED)

    @property
    def v_shaped(self) -> bool:
        """True if the schedule is one of PyTorch's V placements."""
        return any(word in str(self.schedule).lower() for word in ("zbv", "dualpipe"))

    @property
    def splits_backward(self) -> bool:
        """True if the schedule runs weight gradients apart from input gradients."""
        return any(word in str(self.schedule).lower() for word in ("zerobubble", "zbv", "dualpipe", "zero_bubble"))

    @property
    def is_blackwell(self) -> bool:
        """True for Blackwell and later GPUs of NVIDIA. Raises NotSet if the GPU is unknown."""
        name = str(self.device).lower()
        return any(word in name for word in ("b200", "b300", "vr200", "r100", "rubin", "blackwell"))

    @property
    def is_grace(self) -> bool:
        """True for GPUs beside a Grace or Vera CPU in one NVLink domain. Raises NotSet if the GPU is unknown."""
        return any(word in str(self.device).lower() for word in ("gb200", "gb300", "vr200"))

    @property
    def fp8(self) -> Any:
        """Format of 8-bit products, None without them: as set, or as the precision says. Raises NotSet if unknown."""
        value = self.get("fp8")
        if value is UNKNOWN and self.has("precision"):
            word = str(self.precision).lower()
            return word if "fp8" in word or "mx" in word else None
        if value is UNKNOWN:
            raise NotSet("fp8")
        return value

    @property
    def quantized(self) -> bool:
        """True if matrix products are in 8 or 4 bits."""
        words = str(self.either("fp8", "fp4", "precision") or "").lower()
        return any(word in words for word in ("fp8", "fp4", "e4m3", "hybrid", "mx"))
