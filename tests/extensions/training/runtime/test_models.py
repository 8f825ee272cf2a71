from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch

from pipeplan.extensions.training.runtime.model import cut
from pipeplan.extensions.training.runtime.models import BUILT_IN, LlamaSizes, load_model
from pipeplan.foundation.errors import InputError, UnknownNameError
from tests.extensions.training.runtime import models

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_models_load_without_building(name: str) -> None:
    assert load_model(name).name == name


def test_llama_has_8_billion_parameters() -> None:
    from pipeplan.extensions.training.runtime.models import LLAMA_3_8B

    model = load_model("llama-3-8b")
    with torch.device("meta"):
        ends = sum(
            parameter.numel() for build in (model.layers[0], model.layers[-1]) for parameter in build().parameters()
        )
        layer = sum(parameter.numel() for parameter in model.layers[1]().parameters())
    assert ends + LLAMA_3_8B.layers * layer == 8_030_261_248


def test_a_small_llama_computes_causally() -> None:
    model = LlamaSizes(2, 32, 4, 2, 64, 50, 8).model("small")
    model = replace(model, dtype="float32")
    module = model.build(0, 4, seed=0, device=CPU)
    tokens, _ = model.microbatch(0, 0, seed=0)
    changed = tokens.clone()
    changed[0, 5] += 1
    same = (module(tokens) == module(changed % 50)).all(dim=-1)[0].tolist()
    assert same == [True] * 5 + [False] * 3


def test_weights_do_not_depend_on_the_cut() -> None:
    model = models.tiny()
    whole = model.build(0, len(model.layers), seed=3, device=CPU)
    part = model.build(2, 4, seed=3, device=CPU)
    for ours, theirs in zip(whole[2:4].parameters(), part.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_models_that_cannot_be_loaded() -> None:
    for name, error, message in [
        ("gpt-tny", UnknownNameError, "did you mean 'gpt-tiny'"),
        ("no_such_module:model", InputError, "cannot import the model's module 'no_such_module'"),
        ("tests.extensions.training.runtime.models:not_a_function", UnknownNameError, "unknown function"),
        ("tests.extensions.training.runtime.models:raises", InputError, "raised ValueError: no such data$"),
        (
            "tests.extensions.training.runtime.models:returns_layers",
            InputError,
            "returned a value of type list, not a pipeplan.runtime.Model",
        ),
        (
            "tests.extensions.training.runtime.models:returns_nothing",
            InputError,
            "returned None, not a pipeplan.runtime.Model",
        ),
        ("antigravity_of_nobody:", InputError, "invalid model 'antigravity_of_nobody:': expected module:function"),
        ("os\0:getpid", InputError, "contains a zero byte"),
    ]:
        with pytest.raises(error, match=message):
            load_model(name)


def test_models_that_return_the_wrong_thing_later() -> None:
    with pytest.raises(InputError, match=r"layer 7 of model tiny is a int, not a torch\.nn\.Module"):
        models.layer_is_no_module().build(0, 8, seed=0, device=CPU)
    with pytest.raises(InputError, match=r"must return \(input, targets\)"):
        models.batch_is_one_tensor().microbatch(0, 0, seed=0)
    with pytest.raises(InputError, match="builds the layer"):
        replace(models.tiny(), layers=(torch.nn.Linear(2, 2),))
    with pytest.raises(InputError, match="float32 or bfloat16"):
        load_model("gpt-tiny", dtype="float8")


def test_cuts_that_cannot_be() -> None:
    model = models.tiny()
    assert cut(model, 3, (1, 6, 1)) == ((0, 1), (1, 7), (7, 8))
    with pytest.raises(InputError, match=r"invalid layout 4\+3 = 7.*8 layers of tiny"):
        cut(model, 2, (4, 3))
    with pytest.raises(InputError, match="invalid layout 8"):
        cut(model, 2, (8, 0))
    with pytest.raises(InputError, match="8 layers cannot make 9 stages"):
        cut(model, 9)


def test_a_model_that_never_returns_ends_in_time_and_what_it_prints_is_no_answer(capsys):
    with pytest.raises(InputError, match=r"never_returns did not return within 0\.05 s") as caught:
        load_model("tests.extensions.training.runtime.models:never_returns", timeout=0.05)
    assert caught.value.field == "timeout"
    with pytest.raises(InputError, match="returned None"):
        load_model("tests.extensions.training.runtime.models:returns_nothing")
    assert capsys.readouterr() == ("", "here I am\n")


def test_the_largest_seed_seeds_weights_and_data():
    model, seed = load_model("gpt-tiny"), 2**53 - 1
    model.build(0, 1, seed=seed, device=CPU)
    assert torch.equal(model.microbatch(5, 7, seed=seed)[0], model.microbatch(5, 7, seed=seed)[0])
