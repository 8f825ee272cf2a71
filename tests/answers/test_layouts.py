"""Layouts of trainers in ``export`` and in place of numbers of layers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pipeplan
from pipeplan.cli import main
from pipeplan.costs import Layer
from pipeplan.trainers import read_layout

LAYOUTS_PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "layouts.md"
TITAN = "tok_embeddings,layers.0,layers.1 layers.2,layers.3 layers.4,norm,lm_head"


def test_a_layout_is_translated():
    for source, to, text in (
        ("Et*2|t*2|tL", "torchtitan", TITAN),
        (TITAN, "megatron", "Et*2|t*2|tL"),
        ("2+2+1", "Bridge", '[["embedding"] + ["decoder"] * 2, ["decoder"] * 2, ["decoder", "loss"]]'),
    ):
        assert str(pipeplan.export(source, to=to)) == f"{text}\n"
    alone = read_layout(str(pipeplan.export("Et*2|t*2|m|L", to="bridge")))
    assert (alone.layers, alone.mtp_of_stages) == ((2, 2, 0, 0), (0, 0, 1, 0))


@pytest.mark.needs("planning")
def test_flags_of_an_uneven_division_are_a_layout_in_the_shell(capsys):
    """Though they begin with a hyphen; a word that begins with one and is no layout is an option."""
    (row,) = (line for line in LAYOUTS_PAGE.read_text().splitlines() if line.startswith("| `--num-layers"))
    flags = row.split("`")[1]
    for command in ("export", "convert"):
        assert main([command, flags, "--to", "bridge"]) == 0
        assert capsys.readouterr().out == str(pipeplan.export(flags, to="bridge"))
    assert main(["export", "--from", "--to", "bridge"]) == 2
    assert "unknown option '--from'" in capsys.readouterr().err
    few = "--num-layers 8 --pipeline-model-parallel-size 3 --decoder-first-pipeline-num-layers 2"
    assert main(["export", "1f1b", "-p", "3", "-m", "6", f"--layers-per-stage={few}", "--to", "megatron"]) == 0
    assert "'Et*2|t*3|t*3L'" in capsys.readouterr().out


def test_files_are_read_and_written(tmp_path, capsys):
    source, target = tmp_path / "layout.txt", tmp_path / "layout.torchtitan.txt"
    source.write_text("Et*2|t*2|tL\n")
    assert main(["export", str(source), "--to", "torchtitan", "-o", str(target)]) == 0
    assert target.read_text() == f"{TITAN}\n" == pipeplan.export(source, to="torchtitan").text
    assert main(["export", str(source), "--to", "torchtitan", "-o", str(source)]) == 2
    assert "is also an input" in capsys.readouterr().err
    assert source.read_text() == "Et*2|t*2|tL\n"


def test_exported_flags_of_a_trainer_are_a_layout(tmp_path):
    """What an export or a plan writes is read, with everything that stands around the layout."""
    layers = (3, 1, 2, 2)
    shape: dict[str, Any] = {"ranks": 2, "microbatches": 4, "chunks": 2, "layers_per_stage": layers}
    for to in ("megatron", "megatron-bridge", "torchtitan", "torchtitan-python", "primus"):
        exported = pipeplan.export("interleaved-1f1b", to=to, **shape)
        path = tmp_path / "settings.txt"
        path.write_text(exported.text)
        assert read_layout(str(pipeplan.export(path, to="bridge"))).layers == layers, to


BLOCK = Layer(forward=1, backward_input=1, backward_weight=1)
EMBEDDING, HEAD = replace(BLOCK, forward=0.1), replace(BLOCK, forward=2.0)
BLOCKS = replace(BLOCK, count=5)


@pytest.mark.parametrize(
    ("layers", "counts"),
    [
        ((BLOCKS,), (2, 3)),
        ((BLOCKS, HEAD), (2, 4)),
        ((EMBEDDING, BLOCKS), (3, 3)),
        ((EMBEDDING, BLOCKS, HEAD), (3, 4)),
        ((EMBEDDING, *[BLOCK] * 5, HEAD), (3, 4)),
    ],
)
def test_a_layout_in_place_of_numbers_of_layers(layers, counts):
    """Embedding and head are on the first and the last stage where they have costs."""
    shape: dict[str, Any] = {"ranks": 2, "microbatches": 4, "layers": layers}
    for layout in ("Et*2|t*3L", "tok_embeddings,layers.0,layers.1 layers.2,layers.3,layers.4,norm,lm_head"):
        for function in (pipeplan.simulate, pipeplan.explain):
            answer, wanted = (function(layers_per_stage=text, **shape) for text in (layout, counts))
            assert answer.to_dict() == wanted.to_dict()


def test_a_config_file_may_have_a_layout(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "layers_per_stage: Et*2|t*3L\nlayers:\n  - {forward: 1, backward_input: 1, backward_weight: 1, count: 5}\n"
    )
    shape: dict[str, Any] = {"ranks": 2, "microbatches": 4, "config": config}
    assert pipeplan.simulate(**shape).makespan == pipeplan.simulate(layers_per_stage=(2, 3), **shape).makespan
    config.write_text("layers_per_stage: Et*2|t*3mL\n")
    text = pipeplan.export(to="megatron", **shape).text
    assert "--mtp-num-layers 1" in text
    assert "'Et*2|t*3mL'" in text
