"""Configuration files: what is written is read back the same, and whatever is wrong with one is a sentence."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.extensions.planning import Configuration, configuration_document
from pipeplan.extensions.planning.answers.one_configuration import look
from pipeplan.extensions.planning.choice.describing import in_words
from pipeplan.extensions.planning.flags import cluster_of, model_of, read_configuration
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.workload import model
from pipeplan.foundation.errors import FormatError, InputError, UnknownNameError

REQUEST = {"model": "llama3-8b", "cluster": "h100-sxm:8x2", "global_batch": 64, "sequence": 8192}


CONFIGURATIONS = st.builds(
    Configuration,
    sequence=st.just(8192),
    global_batch=st.sampled_from([16, 64]),
    microbatch_size=st.sampled_from([1, 2]),
    tensor=st.sampled_from([1, 2, 8]),
    pipeline=st.just(2),
    data=st.integers(1, 4),
    in_flight=st.sampled_from([None, 4.0]),
    schedule=st.sampled_from(["1f1b", "zbv"]),
    layers=st.sampled_from([None, (16, 16), (15, 17)]),
    sequence_parallel=st.booleans(),
    zero=st.sampled_from([0, 1, 3]),
    lora_rank=st.sampled_from([0, 16]),
    document=st.sampled_from([None, 1024]),
    precision=st.sampled_from(["bf16", "fp8"]),
    recompute=st.sampled_from([(), ("full",), ("core_attn", "mlp")]),
    recompute_by_stage=st.sampled_from([None, (("full",), ())]),
    offload=st.sampled_from([0.0, 0.5, (0.5, 0.0)]),
    software=st.sampled_from(["megatron-core", "torchtitan"]),
)


@given(result=CONFIGURATIONS)
def test_what_is_written_is_read_back(result):
    shape, machines = model("llama3-8b"), cluster("h100-sxm:8x2")
    text = yaml.safe_dump(configuration_document(shape, machines, result), sort_keys=False)
    assert read_configuration(yaml.safe_load(text)) == (shape, machines, result)


def test_copies_of_a_sharded_state_are_read_and_written():
    shape, machines, result = read_configuration(REQUEST | {"zero": 3, "replicate": 2})
    assert (result.data, result.replicate, result.shards) == (16, 2, 8)
    assert in_words(result).endswith("ZeRO-3 in 2 copies")
    assert read_configuration(configuration_document(shape, machines, result)) == (shape, machines, result)


def test_fine_tuning_has_no_flags():
    shape, machines, result = read_configuration(REQUEST | {"pp": 2, "lora_rank": 16, "document": 1024})
    assert in_words(result).endswith("LoRA of rank 16, documents of 1024")
    chosen, _ = look(shape, machines, result)
    assert chosen.flags == {}
    assert "training: adapters beside every product of a layer, everything else is frozen" in chosen.assumed


def test_models_and_clusters_of_ones_own_are_written_whole():
    shape = replace(model("llama3-8b"), name="ours", layers=40)
    known = cluster("h100-sxm:8x2")
    machines = replace(known, gpu=replace(known.gpu, name="ours", memory_bytes=64e9))
    text = yaml.safe_dump(configuration_document(shape, machines, Configuration(sequence=1, global_batch=16, data=16)))
    assert read_configuration(yaml.safe_load(text))[:2] == (shape, machines)


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"model": None}, InputError, "a configuration needs model: add lines such as 'model: llama3-8b'"),
        ({"sequence": None}, InputError, "a configuration needs sequence: add lines such as 'sequence: 8192'"),
        ({"global_batch": 0}, InputError, "invalid global_batch 0: expected an integer"),
        ({"tp": 2, "tensor": 2}, InputError, "tp is given twice"),
        ({"tp": 3}, InputError, "does not divide 16 GPUs"),
        ({"recompute_by_stage": "full"}, FormatError, "must be a list with one value per stage"),
        ({"offload": 2}, InputError, "from 0 to 1"),
    ],
)
def test_what_is_wrong_is_a_sentence(changes, kind, words):
    with pytest.raises(kind) as caught:
        read_configuration(REQUEST | changes)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.field


def test_names_of_files_are_names_of_files_only_where_there_are_any(tmp_path):
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128}
    config |= {"num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 512}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "cluster.yaml").write_text("gpu: h100-sxm\nnodes: 3\n")
    result = model_of("config.json", tmp_path)
    assert result == model_of(tmp_path / "config.json") == replace(model_of(config), name=result.name)
    assert cluster_of("cluster.yaml", tmp_path).gpus == 24
    with pytest.raises(UnknownNameError, match="unknown model"):
        model_of(str(tmp_path / "config.json"), None)
    with pytest.raises(FormatError, match="is a file: write GPU:PER_NODExNODES here"):
        cluster_of(str(tmp_path / "cluster.yaml"), None)
