"""Layouts of trainers: each text is read and written, and translated into the others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.foundation.errors import InputError, PipeplanError, ShapeError, UnknownNameError
from pipeplan.trainers import TrainerLayout, layout_trainers, read_layout, uneven_layers, write_layout

LETTERS = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}

LAYERS = st.lists(st.integers(0, 12), min_size=1, max_size=9).filter(any)


@st.composite
def layouts(draw: st.DrawFn) -> TrainerLayout:
    layers = tuple(draw(LAYERS))
    further = draw(st.integers(0, 3))
    last = max(stage for stage, count in enumerate(layers) if count)
    place = draw(st.integers(last, len(layers) - 1))
    alone = further > 0 and place < len(layers) - 1
    return TrainerLayout(layers=layers, mtp_layers=further, mtp_stage=place if alone else None)


def parts_of(layout: TrainerLayout) -> list[list[str]]:
    """The parts of each stage, by counting."""
    parts = [["decoder"] * count for count in layout.layers]
    parts[0].insert(0, "embedding")
    parts[-1 if layout.mtp_stage is None else layout.mtp_stage] += ["mtp"] * layout.mtp_layers
    parts[-1].append("loss")
    return parts


def python_value(text: str) -> Any:
    assert set(re.findall(r"[a-z]+", text)) <= {*LETTERS}
    return eval(compile(ast.parse(text, mode="eval"), "layout", "eval"), {"__builtins__": {}})


@given(layouts())
def test_every_trainer_writes_the_same_stages(layout: TrainerLayout):
    string = write_layout(layout, "megatron")
    unrolled = re.sub(r"(.)\*(\d+)", lambda match: match[1] * int(match[2]), string)
    assert unrolled.split("|") == ["".join(LETTERS[part] for part in stage) for stage in parts_of(layout)]
    assert python_value(write_layout(layout, "bridge")) == parts_of(layout)
    for trainer in layout_trainers():
        try:
            text = write_layout(layout, trainer)
        except ShapeError:
            assert trainer == "torchtitan"
            assert layout.mtp_layers or 0 in layout.layers[1:-1]
            continue
        assert read_layout(text) == layout


EVEN = TrainerLayout(layers=(3, 4, 4, 2))
LISTS = """[["tok_embeddings", "layers.0"],
  ["layers.1", "layers.2"],  # the middle
  ["norm", "output"],]"""

TEXTS = {
    "3+4+4+2": EVEN,
    "3 4,4|2": EVEN,
    "Et*3|(t*4|)*2t*2L": EVEN,
    "'Ettt|tttt|t*4,|ttL'": EVEN,
    "E t*3 |\nt*4|t*4|\nttL\n": EVEN,
    "--num-layers 13 --pipeline-model-parallel-layout 'Et*3|t*4|t*4|ttL' # as published": EVEN,
    "PIPELINE_ARGS=(\n    --pipeline-model-parallel-layout=Et*3|t*4|t*4|ttL \\\n    --bf16\n)": EVEN,
    '    num_layers: 13\n    pipeline_model_parallel_layout: "Et*3|t*4|t*4|ttL"  # of MI355X\n': EVEN,
    '{\n  "pipeline_model_parallel_layout": "Et*3|t*4|t*4|ttL",\n  "seed": 1\n}': EVEN,
    '[["embedding"] + ["decoder"] * 3] + 2 * [["decoder"] * 4] + [["decoder", "decoder", "loss"]]': EVEN,
    "def recipe():\n    cfg.model.pipeline_model_parallel_layout = None\n"
    '    cfg.model.pipeline_model_parallel_layout = "Et*3|t*4|t*4|ttL"\n': EVEN,
    'layout = 1\ncfg.model.pipeline_model_parallel_layout = [\n    ["embedding", "decoder"],\n    ["mtp"], ["loss"]\n]': (
        TrainerLayout(layers=(1, 0, 0), mtp_layers=1, mtp_stage=1)
    ),
    "tok_embeddings,layers.0 layers.1,layers.2 norm,lm_head": TrainerLayout(layers=(1, 2, 0)),
    LISTS: TrainerLayout(layers=(1, 2, 0)),
    f"[parallelism]\nmodule_fqns_per_model_part = {LISTS}\npipeline_parallel_degree = 3\n": TrainerLayout(
        layers=(1, 2, 0)
    ),
    "    --parallelism.module_fqns_per_model_part tok_embeddings,layers.0 layers.1,norm,lm_head\n    --compile.enable": (
        TrainerLayout(layers=(1, 1))
    ),
    "Et*4|(tttt|)*14tmL": TrainerLayout(layers=(*[4] * 15, 1), mtp_layers=1),
    "Et|(tt|)*30L": TrainerLayout(layers=(1, *[2] * 30, 0)),
    "Et*2|t*2|mm|L": TrainerLayout(layers=(2, 2, 0, 0), mtp_layers=2, mtp_stage=2),
    "--num-layers 61 --pipeline-model-parallel-size 16 --decoder-first-pipeline-num-layers 4 "
    "--decoder-last-pipeline-num-layers 1 --mtp-num-layers 1": TrainerLayout(layers=(*[4] * 15, 1), mtp_layers=1),
    "--num-layers 62 --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split "
    "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 8": TrainerLayout(
        layers=(7, *[8] * 6, 7)
    ),
    "cfg.model.num_layers = 10\ncfg.model.pipeline_model_parallel_size = 2\n"
    "cfg.model.virtual_pipeline_model_parallel_size = 2\ncfg.model.num_layers_in_first_pipeline_stage = 4\n"
    "cfg.model.pipeline_model_parallel_layout = None": TrainerLayout(layers=(2, 3, 2, 3)),
}


@pytest.mark.parametrize("text", TEXTS)
def test_every_form_is_read(text: str):
    assert read_layout(text) == TEXTS[text]


WRONG = {
    "a layout": "unknown layout 'a layout'",
    "Et|xL": "x is not a part",
    "t|L": "exactly one embedding must begin the first stage",
    "Et|tLL": "exactly one loss must end the last stage",
    "E|L": "no stage has a transformer layer",
    "Etm|t|mL": "layers of multi-token prediction must be together on one stage",
    "Et**2|L": "is not a part",
    "Et*99999|(t*99999|)*99999L": "more than 100,000 layers and stages",
    "--num-layers 10 --pipeline-model-parallel-size 4": "10 layers are not a multiple of 4 ranks",
    "--num-layers 10": "a layout needs pipeline_model_parallel_size",
    "--pipeline-model-parallel-layout 'Et|tL": "cannot read the flags",
    '[["embedding"], ["decoder", "loss"], "decoder"]': "expected a list with a list of names for each stage",
    '[["embedding"], ["decoder", "head"]]': "unknown part head of stage 1, expected embedding, decoder, mtp, loss",
    '[["embedding"] * 99999999]': "more than 100,000 layers",
    '[["embedding"] + open("x")]': "cannot read open('x')",
    "cfg.model.pipeline_model_parallel_layout = layout_of(4, 4)": "cannot read layout_of(4, 4)",
    'a.pipeline_model_parallel_layout = "Et|tL"\nb.pipeline_model_parallel_layout = "E|ttL"': "sets 2 layouts (lines 1, 2)",
    "tok_embeddings,layers.0 layers.2,norm,lm_head": "layers.2 is in the place of layers.1",
    "tok_embeddings,layers.0 layers.1,lm_head": "expected the modules of each stage",
    "layers.0,tok_embeddings layers.1,norm,lm_head": "exactly one embedding must begin the first stage",
    "tok_embeddings,vision_encoder,layers.0 layers.1,norm,lm_head": "unknown part vision_encoder of stage 0",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_named(text: str):
    with pytest.raises(PipeplanError, match=re.escape(WRONG[text])) as caught:
        read_layout(text)
    assert "\n" not in str(caught.value)


HOSTILE = {
    "brackets": "[" * 100_000,
    "flags": "--a" * 9_000,
    "sums": "[['a']" + "+[['a']]" * 5_000,
    "ends": "L " * 100_000,
    "blanks behind a key": "num_layers: 1" + " " * 100_000 + "x",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=[*HOSTILE])
def test_hostile_texts_are_refused(text: str):
    for form in (text, f"cfg.model.pipeline_model_parallel_layout = {text}", f"layers.0 {text}"):
        with pytest.raises(PipeplanError):
            read_layout(form)


def divisions() -> Iterator[tuple[int, int, int, int | None, int | None, bool, bool]]:
    for layers, ranks, chunks in product((1, 6, 8, 11, 12, 24), (1, 2, 3, 4), (1, 2, 3)):
        for first, last, embedding, loss in product((None, 2, 3), (None, 2, 4), (False, True), (False, True)):
            yield layers, ranks, chunks, first, last, embedding, loss


def test_uneven_layers_are_all_layers_with_those_of_the_ends():
    divided = 0
    for layers, ranks, chunks, first, last, embedding, loss in divisions():
        try:
            stages = uneven_layers(layers, ranks, chunks, first, last, embedding=embedding, loss=loss)
        except ShapeError:
            continue
        divided += 1
        assert len(stages) == ranks * chunks
        assert sum(stages) == layers
        of_ranks = [sum(stages[rank::ranks]) for rank in range(ranks)]
        assert first is None or of_ranks[0] == first
        assert last is None or of_ranks[-1] == last
        full = [
            count + (stage == 0) * embedding + (stage == len(stages) - 1) * loss for stage, count in enumerate(stages)
        ]
        inner = [count for stage, count in enumerate(full) if stage % ranks not in (0, ranks - 1)]
        assert all(one == other for one, other in pairwise(inner))
    assert divided > 100


def test_layers_that_cannot_be_divided_are_refused():
    with pytest.raises(ShapeError, match="does not combine"):
        uneven_layers(10, 2, first=4, loss=True)
    with pytest.raises(ShapeError, match="4 layers on the first rank and 5 on the last one do not leave"):
        uneven_layers(10, 2, first=4, last=5)
    with pytest.raises(ShapeError, match="at most 100,000 stages"):
        uneven_layers(10, 1_000_000, 1_000_000)
    with pytest.raises(InputError, match="invalid num_layers"):
        read_layout("--num-layers 99999999999999 --pipeline-model-parallel-size 4")


def test_a_trainer_without_layouts_is_refused():
    with pytest.raises(UnknownNameError, match="unknown trainer with layouts"):
        write_layout(EVEN, "pipeplan")
    assert layout_trainers() == ("megatron", "bridge", "torchtitan")
