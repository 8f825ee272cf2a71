"""Tests of recipes in Python: what is read of objects, helpers, registries and adapters, and what is left unknown."""

from __future__ import annotations

import os
import re

import pytest

from pipeplan.extensions.planning.workload import parameter_counts
from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.models import shape_of_sizes
from pipeplan.extensions.review.readers.recipe_names import model_of_flavor, model_of_recipe, registries
from pipeplan.extensions.review.readers.recipes import recipes_in
from pipeplan.extensions.review.settings import UNKNOWN
from pipeplan.extensions.review.stated import ReadSettings, facts_of
from pipeplan.trainers import trainer_kind

DEGREES = "    cfg.model.tensor_model_parallel_size = 2\n    cfg.model.pipeline_model_parallel_size = 4\n"

BRIDGE = f"""
from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _pretrain_common
def mine():
    cfg = _pretrain_common()
    cfg.model = AutoBridge.from_hf_pretrained("Qwen/Qwen3-32B").to_megatron_provider(load_weights=False)
{DEGREES}    return cfg
"""

COMMON = """
def _pretrain_common():
    return ConfigContainer(train=TrainingConfig(global_batch_size=48, micro_batch_size=3), mixed_precision=_base(bf16=True))
"""


def values(recipe):
    """Return the last value of each key."""
    return {entry.key: entry.raw for entry in recipe.entries}


def test_a_helper_is_read_from_the_repository_above_a_recipe_and_else_known_from_the_table(tmp_path):
    recipes = tmp_path / "repository" / "src" / "megatron" / "bridge" / "recipes"
    (recipes / "qwen").mkdir(parents=True)
    (recipes / "common.py").write_text(COMMON)
    (there,) = recipes_in(BRIDGE, "mine.py", recipes / "qwen")
    (copied,) = recipes_in(BRIDGE, "mine.py", tmp_path / "elsewhere")
    (alone,) = recipes_in(BRIDGE, "mine.py")
    assert values(there)["train.global_batch_size"] == 48
    (place,) = (entry.place for entry in there.entries if entry.key == "train.micro_batch_size")
    assert place.file.endswith("common.py")
    assert COMMON.split("\n")[place.line - 1][place.start : place.end] == "3"
    assert values(copied) == values(alone)
    assert values(alone)["train.global_batch_size"] == 32
    assert there.whole
    assert alone.whole
    assert values(alone)["model_name"] == "Qwen3-32B"


def test_a_recipe_on_an_unknown_helper_is_not_whole():
    for base, whole in [("_mine()", False), ("ConfigContainer()", True), ("_pretrain_common()", True)]:
        text = f"def recipe():\n    cfg = {base}\n    cfg.model = Qwen3ModelProvider32B()\n{DEGREES}    return cfg\n"
        (recipe,) = recipes_in(text, "r.py")
        assert recipe.whole == whole, base


def test_what_a_recipe_replaces_is_gone():
    text = (
        "def base():\n    return Trainer.Config(parallelism=ParallelismConfig(pipeline_parallel_degree=4,\n"
        "        tensor_parallel_degree=8), activation_checkpoint=FullAC.Config())\n"
        "def mine():\n    config = base()\n    config.parallelism = ParallelismConfig(pipeline_parallel_degree=2,\n"
        "        context_parallel_degree=2)\n    config.activation_checkpoint = None\n    return config\n"
    )
    mine = recipes_in(text, "r.py")[1]
    assert values(mine) == {"parallelism.pipeline_parallel_degree": 2, "parallelism.context_parallel_degree": 2}


def test_a_copy_of_a_configuration_keeps_what_is_unknown_and_leaves_the_other_as_it_is():
    text = (
        "import copy\n"
        "BASE = ConfigContainer(model=dict(tensor_model_parallel_size=read(), pipeline_model_parallel_size=4))\n"
        "def wide():\n    cfg = copy.deepcopy(BASE)\n    cfg.model.pipeline_model_parallel_size = 8\n    return cfg\n"
        "def deep():\n    return BASE\n"
    )
    wide, deep = (recipe for recipe in recipes_in(text, "r.py") if recipe.name)
    assert values(wide)["model.pipeline_model_parallel_size"] == 8
    assert values(deep)["model.pipeline_model_parallel_size"] == 4
    assert values(wide)["model.tensor_model_parallel_size"] is UNKNOWN


def test_what_a_helper_sets_after_it_may_have_returned_is_unknown():
    text = (
        "def _tune(model):\n    if torch.cuda.is_available():\n        return\n    model.tensor_model_parallel_size = 8\n"
        f"def recipe():\n{DEGREES}    _tune(cfg.model)\n    return cfg\n"
    )
    (recipe,) = recipes_in(text, "r.py")
    assert values(recipe)["model.tensor_model_parallel_size"] is UNKNOWN
    assert values(recipe)["model.pipeline_model_parallel_size"] == 4


def test_a_helper_that_changes_a_configuration_is_placed_at_its_call_and_an_argument_where_it_is_passed():
    text = (
        "def _tune(model, tp, pp=4):\n    model.tensor_model_parallel_size = tp\n"
        "    model.pipeline_model_parallel_size = pp\n"
        "def recipe():\n    cfg = _common()\n    _tune(cfg.model, 16)\n    return cfg\n"
    )
    (recipe,) = recipes_in(text, "r.py")
    tp, pp = (entry.place for entry in recipe.entries)
    assert (tp.line, text.split("\n")[5][tp.start : tp.end]) == (6, "16")
    assert (pp.line, pp.start) == (6, -1)


@pytest.mark.parametrize(
    ("peft", "rank"),
    [
        ("LoRA(dim=16, target_modules=['linear_qkv'])", 16),
        ("LoRA()", 32),
        ("default_peft_config(peft_scheme)", 32),
        ("default_peft_config('lora', dim=8)", 8),
    ],
)
def test_adapters_are_read_with_their_rank(peft, rank):
    text = f"def recipe(peft_scheme='lora'):\n    cfg = _sft_common()\n    cfg.peft = {peft}\n{DEGREES}    return cfg\n"
    (recipe,) = recipes_in(text, "r.py")
    assert values(recipe)["peft.dim"] == rank
    assert values(recipe)["phase"] == "peft"


def test_converters_of_torchtitan_set_the_precision_and_the_rank_of_adapters():
    text = (
        "from . import model_registry\ndef mine():\n    return Trainer.Config(parallelism=ParallelismConfig(\n"
        "        pipeline_parallel_degree=2, tensor_parallel_degree=1), activation_checkpoint=FullACOfMine.Config(),\n"
        "        spec=ModelSpec(flavor='8B'), model_spec=model_registry('8B', converters=[\n"
        "        MXFP8GroupedExpertsConverter.Config(), LoRAConverter.Config(rank=4)]))\n"
    )
    (recipe,) = recipes_in(text, "config_registry.py")
    read = values(recipe)
    assert (read["precision"], read["peft.rank"], read["phase"]) == ("mxfp8", 4, "peft")


def test_full_training_has_no_adapters():
    text = f"def recipe():\n    cfg = _peft_common()\n    cfg.peft = None\n{DEGREES}    return cfg\n"
    (recipe,) = recipes_in(text, "r.py")
    assert not values(recipe).keys() & {"peft.dim", "phase"}


def test_a_flavor_of_torchtitan_has_its_own_sizes():
    text = (
        "from torchtitan.models.deepseek_v3 import model_registry\n"
        "def deepseek_v3_{0}():\n    return Trainer.Config(model_spec=model_registry('{0}'),\n"
        "        parallelism=ParallelismConfig(pipeline_parallel_degree=2, tensor_parallel_degree=1))\n"
    )
    for flavor, layers in [("debugmodel", 6), ("671B", 61), ("mine", None)]:
        (recipe,) = recipes_in(text.format(flavor), "config_registry.py")
        facts = facts_of(recipe, trainer_kind("torchtitan"))
        assert facts.get("layers", None) == layers, flavor


def test_every_flavor_with_a_size_in_its_name_has_as_many_parameters():
    sized = 0
    for family, flavor in registries():
        entries = tuple(model_of_flavor(family, flavor, SettingPlace()))
        facts = facts_of(ReadSettings(entries=entries), trainer_kind("torchtitan"))
        shape = shape_of_sizes({name: facts.get(name, None) for name in facts.settings})
        assert shape is not None, (family, flavor)
        assert shape.layers == facts.layers
        size = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)B", flavor, re.IGNORECASE)
        if size is not None:
            assert parameter_counts(shape).total / 1e9 == pytest.approx(float(size[1]), rel=0.3), (family, flavor)
            sized += 1
    assert sized > 25


def test_names_of_recipes_are_read_with_their_registry():
    def models(*arguments):
        return [entry.raw for entry in model_of_recipe(*arguments) if entry.key == "model_name"]

    place = SettingPlace()
    assert models("llama31_405b_pretrain_config", place) == ["Meta-Llama-3.1-405B"]
    assert models("deepseek_v3_debugmodel", place, "deepseek_v3") == ["flavor debugmodel of deepseek_v3"]
    assert models("deepseek_v3_debugmodel", place, "llama3") == []
    assert models("deepseek_v3_my_own", place) == []


def test_hostile_imports_are_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "big.py").write_text("x = 1\n" * 300_000)
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "selfish.py").write_text("from selfish import f\nfrom selfish import *\n")
    for number in range(60):
        (tmp_path / f"chain{number}.py").write_text(f"from chain{number + 1} import f\n")
    for module in ("pipe", "big", "broken", "selfish", "chain0", "...............etc", "missing"):
        text = (
            f"from {module} import f\ndef recipe():\n    cfg = f()\n    cfg[[1]] = {{[]: 2}}\n{DEGREES}    return cfg\n"
        )
        (recipe,) = recipes_in(text, str(tmp_path / "r.py"), tmp_path)
        assert not recipe.whole, module
        assert len(recipe.entries) == 2, module
