"""What a plan gives to paste, read and validated by Megatron-LM's own trainer, where its source is at hand.

The package that is tested here has no ``megatron.training``. ``PIPEPLAN_MEGATRON_SOURCE`` names the folder of a clone of
Megatron-LM or of an unpacked package, or several with ``:`` between them; each is read with the Megatron-core in it.
"""

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeplan.extensions.planning import Configuration
from pipeplan.extensions.planning.flags.megatron_hybrid import is_hybrid
from pipeplan.extensions.planning.trainers import flags_of
from pipeplan.extensions.planning.workload import read_config
from pipeplan.trainers import TRAINERS
from tests.extensions.planning.workload.test_config_json import CONFIGS
from tests.peers.megatron.expected import expected
from tests.peers.megatron.networks import wanted
from tests.peers.megatron.trainer import Case, Job
from tests.peers.plans import H100S, PLANS, Planned, drawn, plan
from tests.peers.planted import planted_flags
from tests.peers.shell import launched
from tests.processes import run_ranks

VARIABLE = "PIPEPLAN_MEGATRON_SOURCE"
SOURCES = [source for source in os.environ.get(VARIABLE, "").split(":") if source]

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not SOURCES, reason=f"set {VARIABLE} to a clone of Megatron-LM: its trainer is not in the package"
    ),
]


PLANTED = ("latent attention", "on the host", "one rank, all sharded")
"""Plans in whose flags wrong values are planted."""

IMPLIED = (
    "one rank, all sharded: --use-distributed-optimizer",
    "one rank, all sharded: --data-parallel-sharding-strategy",
)
"""Flags that Megatron-LM's other flags imply in some release."""

DRAWN = drawn(105, ("megatron-core", "megatron-core-plain", "nemo", "megatron-bridge", "megatron-bridge-26.04"))


def releases_of(source: str) -> dict[str, str]:
    """The release of a source, where flags are written for it; otherwise the newest one."""
    text = Path(source, "megatron", "core", "package_info.py").read_text()
    major, minor = (re.findall(rf"^{part} = (\d+)", text, re.MULTILINE)[0] for part in ("MAJOR", "MINOR"))
    release = f"{major}.{minor}"
    return {"megatron": release} if release in TRAINERS["megatron"].releases else {}


def case(planned: Planned, source: str) -> Case:
    shape, machines, configuration = planned
    text = flags_of(shape, machines, configuration, versions=releases_of(source))["megatron"].text
    wanted = expected(shape, machines, configuration)
    return Case(launched(text), wanted, configuration.gpus, machines.gpu.generation, configuration.data)


OTHER_NAMES = ("0.14", "0.15")
"""Releases with other names of arguments, in which offload and dispatchers are not as planned, with a warning."""


def refusals_in(faults: dict[str, str]) -> dict[str, str]:
    """Those of them that are errors, which stand under the name of their class."""
    return {name: fault for name, fault in faults.items() if re.search("Error|SystemExit", name)}


HYBRIDS = {path.stem: shape for path in sorted(CONFIGS.glob("*.json")) if is_hybrid(shape := read_config(path))}
SHAPES = (
    Configuration(sequence=4096, global_batch=128, data=64),
    Configuration(sequence=4096, global_batch=128, pipeline=4, data=16),
    Configuration(sequence=4096, global_batch=128, pipeline=2, data=32, chunks=2, schedule="interleaved-1f1b"),
)


@pytest.mark.parametrize("source", SOURCES)
def test_its_trainer_takes_the_pattern_of_every_hybrid(source: str, ran: Callable[[str], None]):
    """Those that have one; a refusal stands under the name of its error."""
    if not (Path(source) / "megatron" / "training" / "models" / "hybrid.py").is_file():
        pytest.skip(f"{Path(source).name} does not divide hybrids into stages")
    cases = {}
    for name, shape in HYBRIDS.items():
        for configuration in SHAPES:
            text = flags_of(shape, H100S, configuration)["megatron"].text
            if "torchrun" in text:
                where = f"{name}, {configuration.pipeline} x {configuration.chunks}"
                cases[where] = Case(launched(text), {}, 64, "hopper", configuration.data)
    [faults] = run_ranks("tests.peers.megatron.trainer", 1, Job(source, cases), timeout=1800)
    assert {name: wrong for name, wrong in faults.items() if refusals_in(wrong)} == {}
    ran(f"its validate_args of {Path(source).name} on the patterns of {len(cases)} hybrids")


PUBLISHED = {path.stem: shape for path in sorted(CONFIGS.glob("*.json")) if not is_hybrid(shape := read_config(path))}


@pytest.mark.parametrize("source", SOURCES)
def test_its_trainer_reads_the_network_of_every_published_file(source: str, ran: Callable[[str], None]):
    """Beside the plan's values, those that the config.json has, which is read here once more."""
    cases = {}
    for name, shape in PUBLISHED.items():
        right = case((shape, H100S, SHAPES[0]), source)
        if any(word.endswith("pretrain_gpt.py") for word in right.launch.words):
            file = json.loads((CONFIGS / f"{name}.json").read_text())
            cases[name] = replace(right, wanted=right.wanted | wanted(file))
    [faults] = run_ranks("tests.peers.megatron.trainer", 1, Job(source, cases), timeout=1800)
    if releases_of(source).get("megatron") in OTHER_NAMES:
        faults = {name: refusals_in(wrong) for name, wrong in faults.items()}
    assert {name: wrong for name, wrong in faults.items() if wrong} == {}
    ran(f"its arguments of {Path(source).name} for {len(cases)} published files")


@pytest.mark.parametrize("source", SOURCES)
def test_every_planted_value_is_found(source: str, ran: Callable[[str], None]):
    cases = {}
    for name in PLANTED:
        right = case(plan(name), source)
        words = right.launch.words
        start = next(place for place, word in enumerate(words) if word.endswith("pretrain_gpt.py")) + 1
        for flag, changed in planted_flags(words[start:]):
            launch = replace(right.launch, words=(*words[:start], *changed))
            cases[f"{name}: {flag}"] = replace(right, launch=launch)
    [faults] = run_ranks("tests.peers.megatron.trainer", 1, Job(source, cases), timeout=1800)
    assert [name for name in cases if not faults[name] and name not in IMPLIED] == []
    ran(f"{len(cases)} wrong values planted in flags for {Path(source).name}")


@pytest.mark.parametrize("source", SOURCES)
def test_its_trainer_reads_every_plan_as_planned(source: str, ran: Callable[[str], None]):
    assert (Path(source) / "megatron" / "training" / "arguments.py").is_file()
    plans = {name: plan(name) for name in PLANS} | DRAWN
    plans = {name: planned for name, planned in plans.items() if not is_hybrid(planned[0])}
    versions = releases_of(source)
    plans = {
        name: each for name, each in plans.items() if "torchrun" in flags_of(*each, versions=versions)["megatron"].text
    }
    assert len(plans) > 80
    job = Job(source, {name: case(planned, source) for name, planned in plans.items()})
    [faults] = run_ranks("tests.peers.megatron.trainer", 1, job, timeout=1800)
    if releases_of(source).get("megatron") in OTHER_NAMES:
        faults = {name: refusals_in(wrong) for name, wrong in faults.items()}
    assert {name: wrong for name, wrong in faults.items() if wrong} == {}
    ran(f"its validate_args of {Path(source).name} on the flags of {len(plans)} plans")
