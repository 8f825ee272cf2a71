# ruff: noqa: E501
"""Configurations in the form of each trainer, each with one fault."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """File of a trainer, what is read from it, and the rule whose fault it has."""

    file: str
    text: str
    trainer: str
    settings: dict[str, object]
    fault: str


CASES = (
    Case(
        "pretrain.sh",
        """#!/bin/bash
#SBATCH --nodes=16
# Don't trust the defaults.
TP=${TP:-4} PP=8
export GPUS_PER_NODE=8
LAYERS=$((PP * 11 + 6))
MODEL="--num-layers $LAYERS --hidden-size 4096 --num-attention-heads 64 \\
  --group-query-attention --num-query-groups 4"
MODEL+=" --sequence-parallel"
[[ $PP == 1 ]] && MODEL+=" --num-virtual-stages-per-pipeline-rank 4"
ARGS=(
  --tensor-model-parallel-size ${TP}  # inside a node
  --pipeline-model-parallel-size=$PP
  --micro-batch-size 1
)
srun bash -c "torchrun --nproc_per_node $GPUS_PER_NODE pretrain_gpt.py ${MODEL} ${ARGS[*]} --bf16"
""",
        "megatron-lm",
        {"layers": 94, "tp": 4, "pp": 8, "nodes": 16, "gpus_per_node": 8, "sequence_parallel": True, "kv_groups": 4},
        "layers-per-rank",
    ),
    Case(
        "args.txt",
        "--num-layers 46\\n--pipeline-model-parallel-size 8\\n--tensor-model-parallel-size 1\\n--bf16\\n".replace(
            "\\n", "\n"
        ),
        "megatron-lm",
        {"layers": 46, "pp": 8, "tp": 1},
        "layers-per-rank",
    ),
    Case(
        "args.yaml",
        "MODEL_ARGS:\n  --num-layers: 46\n  --pipeline-model-parallel-size: 4\n  --tensor-model-parallel-size: 1\n  --bf16: true\n",
        "megatron-lm",
        {"layers": 46, "pp": 4},
        "layers-per-rank",
    ),
    Case(
        "args.json",
        '[\n  "--num-layers", "46",\n  "--pipeline-model-parallel-size", "4", "--tensor-model-parallel-size", "1",\n'
        '  "--bf16"\n]\n',
        "megatron-lm",
        {"layers": 46, "pp": 4, "tp": 1, "bf16": True},
        "layers-per-rank",
    ),
    Case(
        "namespace.txt",
        "Namespace(num_layers=46, pipeline_model_parallel_size=4, tensor_model_parallel_size=1,\n"
        "  account_for_embedding_in_pipeline_split=False, account_for_loss_in_pipeline_split=False,\n"
        "  decoder_first_pipeline_num_layers=None, decoder_last_pipeline_num_layers=None,\n"
        "  pipeline_model_parallel_layout=None, virtual_pipeline_model_parallel_size=None)\n",
        "megatron-lm",
        {"layers": 46, "pp": 4, "tp": 1, "vpp": None},
        "layers-per-rank",
    ),
    Case(
        "train.log",
        "[rank0] using world size: 16\n------------------------ arguments ------------------------\n"
        "  num_layers ...................................... 46\n"
        "  pipeline_model_parallel_size .................... 4\n"
        "  tensor_model_parallel_size ...................... 2\n"
        "  sequence_parallel ............................... True\n"
        "  virtual_pipeline_model_parallel_size ............ None\n"
        "  decoder_first_pipeline_num_layers ............... None\n"
        "  decoder_last_pipeline_num_layers ................ None\n"
        "  pipeline_model_parallel_layout .................. None\n"
        "-------------------- end of arguments ---------------------\n",
        "megatron-lm",
        {"layers": 46, "pp": 4, "tp": 2, "vpp": None},
        "layers-per-rank",
    ),
    Case(
        "titan.log",
        "[rank0]:[titan] 2026-11-01 - root - INFO - Running with configs: {\n"
        '[rank0]:  "training": {"local_batch_size": 4},\n[rank0]:  "parallelism": {\n'
        '[rank0]:    "pipeline_parallel_degree": 4,\n[rank0]:    "pipeline_parallel_schedule": "1F1B",\n'
        '[rank0]:    "pipeline_parallel_microbatch_size": 3\n[rank0]:  }\n[rank0]:}\n[rank0]:step: 1 loss: 2\n',
        "torchtitan",
        {"pp": 4, "schedule": "1F1B", "local_batch": 4, "micro_batch": 3},
        "local-batch-not-divisible",
    ),
    Case(
        "bridge.log",
        "0: ----- configuration -----\n0: model:\n0:   _target_: megatron.bridge.models.gpt_provider.GPTModelProvider\n"
        "0:   num_layers: 46\n0:   pipeline_model_parallel_size: 4\n0:   tensor_model_parallel_size: 1\n"
        "0:   pipeline_model_parallel_layout: null\n0:   num_layers_in_first_pipeline_stage: null\n"
        "0:   num_layers_in_last_pipeline_stage: null\n0:   account_for_embedding_in_pipeline_split: false\n"
        "0:   account_for_loss_in_pipeline_split: false\n0: train:\n0:   global_batch_size: 64\n0: building GPT model\n",
        "megatron-bridge",
        {"layers": 46, "pp": 4, "global_batch": 64},
        "layers-per-rank",
    ),
    Case(
        "checkpoint_args.json",
        '{\n  "num_layers": 46,\n  "pipeline_model_parallel_size": 4,\n  "tensor_model_parallel_size": 1,\n'
        '  "pipeline_model_parallel_layout": null,\n  "decoder_first_pipeline_num_layers": null,\n'
        '  "decoder_last_pipeline_num_layers": null,\n  "account_for_embedding_in_pipeline_split": false,\n'
        '  "account_for_loss_in_pipeline_split": false,\n  "bf16": true\n}\n',
        "megatron-lm",
        {"layers": 46, "pp": 4},
        "layers-per-rank",
    ),
    Case(
        "glm.py",
        '''"""Recipes."""
from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _pretrain_common


def _layout(stages):
    return [["embedding"] + ["decoder"] * 5] + [["decoder"] * 6] * 6 + [["decoder"] * 4 + ["mtp", "loss"]]


def glm45_air_pretrain_config() -> ConfigContainer:
    cfg = _pretrain_common()
    cfg.model = AutoBridge.from_hf_pretrained("zai-org/GLM-4.5-Air").to_megatron_provider(load_weights=False)
    cfg.model.tensor_model_parallel_size = 1
    cfg.model.pipeline_model_parallel_size = 8
    cfg.model.expert_model_parallel_size = 8
    cfg.model.pipeline_model_parallel_layout = _layout(8)
    cfg.train.global_batch_size = 2048
    cfg.train.micro_batch_size = 1
    return cfg
''',
        "megatron-bridge",
        {"model_name": "GLM-4.5-Air", "pp": 8, "ep": 8, "global_batch": 2048, "micro_batch": 1},
        "layout-layers",
    ),
    Case(
        "bridge.yaml",
        "model:\n  _target_: megatron.bridge.models.gpt_provider.GPTModelProvider\n  num_layers: 46\n"
        "  pipeline_model_parallel_size: 4\n  tensor_model_parallel_size: 1\n  pipeline_model_parallel_layout: null\n"
        "  num_layers_in_first_pipeline_stage: null\n  num_layers_in_last_pipeline_stage: null\n"
        "  account_for_embedding_in_pipeline_split: false\n  account_for_loss_in_pipeline_split: false\n"
        "train:\n  global_batch_size: 64\n  micro_batch_size: 1\n",
        "megatron-bridge",
        {"layers": 46, "pp": 4, "global_batch": 64},
        "layers-per-rank",
    ),
    Case(
        "titan.toml",
        '[model]\nname = "llama3"\nflavor = "70B"\n\n[training]\nlocal_batch_size = 4\nseq_len = 8192\n\n[parallelism]\n'
        'tensor_parallel_degree = 8\npipeline_parallel_degree = 8\npipeline_parallel_schedule = "Interleaved1F1B"\n'
        "pipeline_parallel_microbatch_size = 3\n",
        "torchtitan",
        {"tp": 8, "pp": 8, "schedule": "Interleaved1F1B", "local_batch": 4, "micro_batch": 3},
        "local-batch-not-divisible",
    ),
    Case(
        "config_registry.py",
        """from torchtitan.trainer import Trainer
from torchtitan.config import ParallelismConfig, TrainingConfig


def llama3_70b() -> Trainer.Config:
    return Trainer.Config(
        training=TrainingConfig(local_batch_size=4, seq_len=8192),
        parallelism=ParallelismConfig(
            pipeline_parallel_degree=4,
            pipeline_parallel_schedule="Interleaved1F1B",
            pipeline_parallel_microbatch_size=3,
        ),
    )
""",
        "torchtitan",
        {"pp": 4, "schedule": "Interleaved1F1B", "local_batch": 4, "micro_batch": 3},
        "local-batch-not-divisible",
    ),
    Case(
        "overrides.sh",
        "NGPU=8 ./run_train.sh --module llama3 --parallelism.pipeline_parallel_degree 4 \\\n"
        "  --parallelism.pipeline_parallel_schedule 1F1B --training.local_batch_size=4 \\\n"
        "  --parallelism.pipeline_parallel_microbatch_size 3\n",
        "torchtitan",
        {"pp": 4, "schedule": "1F1B", "local_batch": 4, "micro_batch": 3},
        "local-batch-not-divisible",
    ),
    Case(
        "primus.yaml",
        "work_group: amd\nmodules:\n  pre_trainer:\n    framework: megatron\n    model: llama3.1_405B.yaml\n    overrides:\n"
        "      num_layers: 126\n      tensor_model_parallel_size: 8\n      pipeline_model_parallel_size: 8\n"
        "      pipeline_model_parallel_layout: null\n      decoder_first_pipeline_num_layers: null\n"
        "      decoder_last_pipeline_num_layers: null\n      sequence_parallel: true\n",
        "primus",
        {"layers": 126, "tp": 8, "pp": 8},
        "layers-per-rank",
    ),
    Case(
        "nemo.yaml",
        "trainer:\n  devices: 8\n  num_nodes: 4\nmodel:\n  target: nemo.collections.nlp.GPT\n  micro_batch_size: 1\n"
        "  global_batch_size: 30\n  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 4\n  num_layers: 32\n",
        "nemo",
        {"tp": 2, "pp": 4, "global_batch": 30, "nodes": 4, "gpus_per_node": 8},
        "batch-not-divisible",
    ),
    Case(
        "automodel.yaml",
        "recipe: TrainFinetuneRecipeForNextTokenPrediction\nmodel:\n"
        "  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n"
        "  pretrained_model_name_or_path: meta-llama/Llama-3.3-70B-Instruct\n"
        "distributed:\n  pp_size: 8\n  tp_size: 1\n  pipeline:\n    pp_schedule: interleaved1f1b\n    pp_microbatch_size: 4\n"
        "step_scheduler:\n  local_batch_size: 16\n  global_batch_size: 64\n",
        "nemo-automodel",
        {"pp": 8, "micro_batch": 4, "local_batch": 16, "schedule": "interleaved1f1b"},
        "automodel-too-few-microbatches",
    ),
    Case(
        "deepspeed.json",
        '{\n  "train_batch_size": 60,\n  "train_micro_batch_size_per_gpu": 4,\n  "gradient_accumulation_steps": 8,\n'
        '  "zero_optimization": {"stage": 2},\n  "pipeline": {"stages": 4, "partition_method": "parameters"}\n}\n',
        "deepspeed",
        {"global_batch": 60, "micro_batch": 4, "pp": 4, "zero_stage": 2},
        "zero-beside-pipeline",
    ),
    Case(
        "swift.sh",
        "megatron sft --model Qwen/Qwen3-235B-A22B --num_layers 94 --pipeline_model_parallel_size 8 \\\n"
        "  --tensor_model_parallel_size 4 --sequence_parallel true\n",
        "ms-swift",
        {"layers": 94, "pp": 8, "tp": 4, "sequence_parallel": True},
        "layers-per-rank",
    ),
    Case("layout.txt", "Et*4|t*4|t*4|t*4L|\n", "megatron-lm", {"layout": "Et*4|t*4|t*4|t*4L|"}, "empty-stage"),
)
