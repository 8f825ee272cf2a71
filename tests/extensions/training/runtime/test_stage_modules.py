"""Modules of stages: which are refused, and the names of their state."""

import pytest
import torch
from torch import nn

from pipeplan import simulate
from pipeplan.extensions.training.runtime.stage_modules import load_saved_state, require_runnable, saved_state
from pipeplan.foundation.errors import InputError


def stage() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))


def test_compiled_modules_are_refused_with_split_backwards_alone():
    """Wrapped, wrapped in part, and compiled in place, as a whole or in part."""
    in_place, part_in_place = stage(), stage()
    in_place.compile(backend="eager")
    part_in_place[1].compile(backend="eager")
    wrapped_part = nn.Sequential(nn.Linear(2, 2), torch.compile(nn.Linear(2, 2), backend="eager"))
    full, split = (simulate(name, ranks=2, microbatches=2).schedule for name in ("1f1b", "zb-h1"))
    for module in (in_place, part_in_place, wrapped_part, torch.compile(stage(), backend="eager")):
        require_runnable([module], full)
        with pytest.raises(InputError, match=r"cannot split a backward pass through torch\.compile"):
            require_runnable([module], split)
    require_runnable([stage()], split)


def test_the_state_of_a_compiled_stage_has_the_names_of_an_uncompiled_one():
    plain = stage()
    wrapped = torch.compile(stage(), backend="eager")
    in_part = nn.Sequential(nn.Linear(2, 2), torch.compile(nn.Linear(2, 2), backend="eager"))
    for module in (wrapped, in_part):
        assert saved_state(module).keys() == saved_state(plain).keys()
        load_saved_state(module, saved_state(plain))
        assert all(torch.equal(value, saved_state(plain)[name]) for name, value in saved_state(module).items())
        load_saved_state(plain, dict(module.state_dict()))
    with pytest.raises(RuntimeError, match="Unexpected key"):
        load_saved_state(plain, {"3.weight": torch.zeros(2, 2), **saved_state(plain)})
