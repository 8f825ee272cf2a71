"""Megatron-LM's own parser and ``validate_args`` from its source, in a process of their own, without a GPU.

``megatron.training`` is imported without its ``__init__``, which imports the whole trainer. Stand-ins replace what is
missing here (Triton, tokenizers, a GPU, Transformer Engine's release): none of it reads a flag.
"""

import os
import sys
import typing
from argparse import SUPPRESS, ArgumentParser
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import torch
import torch.utils.flop_counter  # Asks for Triton when it is imported: before there is a stand-in.
import typing_extensions
from packaging.version import Version

from tests.peers.megatron.expected import wrong
from tests.peers.shell import Launch
from tests.peers.stand_ins import StandIns, gpu

BESIDE = ("--no-rope-fusion",)
"""The fusion needs Transformer Engine."""

PROGRAMS = ("pretrain_gpt.py", "pretrain_hybrid.py")
MISSING = ("six", "triton", "megatron.training.tokenizer")
TRANSFORMER_ENGINE = "2.10.0"
"""From this release on, moving activations to the host needs a variable."""


@dataclass(frozen=True)
class Case:
    """What a plan's text sets, beside what was planned: the arguments, GPUs and their generation, and replicas."""

    launch: Launch
    wanted: dict[str, Any]
    gpus: int
    generation: str
    replicas: int


@dataclass(frozen=True)
class Job:
    """Cases by name, for the Megatron-LM whose source is in a folder."""

    source: str
    cases: dict[str, Case]


def main(job: Job) -> dict[str, dict[str, str]]:
    """What of each case is not as planned, by argument; a refusal stands under the name of its error."""
    with mock.patch.object(torch, "compile", lambda function, **_: function):
        arguments = imported(Path(job.source))
    return {name: judged(arguments, case) for name, case in job.cases.items()}


def imported(source: Path, *more: str) -> ModuleType:
    """``megatron.training.arguments`` of a source; more modules may be missing."""
    sys.path.insert(0, str(source))
    sys.meta_path.insert(0, StandIns((*MISSING, *more)))
    if not hasattr(typing, "override"):
        typing.override = typing_extensions.override  # type: ignore[attr-defined]
    training = ModuleType("megatron.training")
    training.__path__ = [str(source / "megatron" / "training")]
    sys.modules["megatron.training"] = training
    variables = import_module("megatron.training.global_vars")
    for name in ("get_args", "get_timers", "get_adlr_autoresume"):
        setattr(training, name, getattr(variables, name))
    utils = import_module("megatron.core.utils")
    assert Path(str(utils.__file__)).is_relative_to(source)
    utils._te_version = Version(TRANSFORMER_ENGINE)  # type: ignore[attr-defined]
    return import_module("megatron.training.arguments")


def judged(arguments: Any, case: Case) -> dict[str, str]:
    program = next(program for program in PROGRAMS if any(word.endswith(program) for word in case.launch.words))
    words = case.launch.after(program)
    variables = case.launch.variables | {"WORLD_SIZE": str(case.gpus), "RANK": "0"}
    command = [program, *words, *BESIDE]
    with (
        mock.patch.dict(os.environ, variables),
        mock.patch.object(sys, "argv", command),
        gpu(case.generation, case.generation),
    ):
        try:
            parsed = arguments.parse_args()
            arguments.validate_args(parsed)
            config = arguments.core_transformer_config_from_args(parsed)
        except (AssertionError, NameError, RuntimeError, TypeError, ValueError) as error:
            return {type(error).__name__: str(error)}
        except SystemExit:
            return {"SystemExit": "the parser refuses the flags"}
    wanted = case.wanted | {"data_parallel_size": case.replicas}
    values = vars(parsed) | {name: value for name, value in vars(config).items() if name in wanted}
    return wrong(wanted, values, explicit(arguments, words))


def explicit(arguments: Any, words: tuple[str, ...]) -> set[str]:
    """The names of the arguments that flags set."""
    return set(vars(parser_without_defaults(arguments).parse_args(words)))


@cache
def parser_without_defaults(arguments: Any) -> ArgumentParser:
    """Megatron-LM's parser, which sets only what flags set; it takes a second to make."""
    parser: ArgumentParser = arguments.add_megatron_arguments(ArgumentParser(allow_abbrev=False))
    for action in parser._actions:
        action.default = SUPPRESS
    return parser
