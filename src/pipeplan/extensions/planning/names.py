"""Built-in names, which editors complete; made by ``python -m docs.build.options --write``.

Functions take any text in place of them: plugins have further names.
"""

from typing import Literal

# fmt: off
GpuName = Literal[
    "a100-sxm-40gb", "a100-sxm-80gb", "a100-pcie-80gb", "a800-sxm-80gb", "h100-sxm", "h100-sxm-96gb-hbm2e", "h200-sxm",
    "gh200", "h800-sxm", "h20", "b200-sxm", "b300-sxm", "gb200", "gb300", "mi300x", "mi325x", "mi355x", "v100-sxm-32gb",
    "l40s", "rtx-4090"
]
"""GPUs of a cluster."""

ModelName = Literal[
    "codellama-34b", "command-r-35b", "dbrx", "deepseek-v2", "deepseek-v2-lite", "deepseek-v3", "deepseek-v3.2",
    "deepseek-v4-flash", "gemma-2b", "gemma-7b", "gemma2-27b", "gemma2-2b", "gemma2-9b", "gemma3-12b", "gemma3-1b",
    "gemma3-27b", "gemma3-4b", "glm-4.5", "glm-4.5-air", "glm-4.7-flash", "glm-5", "glm-5.2", "gpt-neox-20b",
    "gpt-oss-120b", "gpt-oss-20b", "gpt2", "gpt2-large", "gpt2-medium", "gpt2-xl", "gpt3-175b", "gpt3-6.7b",
    "granite-4.0-h-small", "grok-1", "kimi-k2", "kimi-k2.5", "kimi-linear-48b-a3b", "lfm2-8b-a1b", "llama-13b",
    "llama-33b", "llama-65b", "llama-7b", "llama2-13b", "llama2-70b", "llama2-7b", "llama3-70b", "llama3-8b",
    "llama3.1-405b", "llama3.1-70b", "llama3.1-8b", "llama3.2-1b", "llama3.2-3b", "llama4-maverick", "llama4-scout",
    "megatron-1.7b", "megatron-1008b", "megatron-145.6b", "megatron-175b", "megatron-18.4b", "megatron-1t",
    "megatron-22b", "megatron-3.6b", "megatron-310.1b", "megatron-39.1b", "megatron-529.6b", "megatron-530b",
    "megatron-7.5b", "megatron-76.1b", "mimo-v2-flash", "minimax-m2", "mistral-7b", "mistral-7b-v0.3",
    "mistral-large-123b", "mistral-nemo-12b", "mistral-small-24b", "mixtral-8x22b", "mixtral-8x7b", "moonlight-16b-a3b",
    "mpt-125m", "mpt-13b", "mpt-1b", "mpt-30b", "mpt-350m", "mpt-3b", "mpt-70b", "mpt-760m", "mpt-7b", "mt-nlg-530b",
    "nemotron-3-nano-30b-a3b", "nemotron-3-super-120b-a12b", "nemotron-nano-9b-v2", "nemotron4-15b", "nemotron4-340b",
    "olmo-hybrid-7b", "olmo3-7b", "phi3-medium", "phi3-mini", "phi4", "pythia-12b", "pythia-6.9b", "qwen1.5-moe-a2.7b",
    "qwen2-57b-a14b", "qwen2.5-0.5b", "qwen2.5-1.5b", "qwen2.5-14b", "qwen2.5-32b", "qwen2.5-3b", "qwen2.5-72b",
    "qwen2.5-7b", "qwen3-0.6b", "qwen3-1.7b", "qwen3-14b", "qwen3-235b-a22b", "qwen3-30b-a3b", "qwen3-32b", "qwen3-4b",
    "qwen3-8b", "qwen3-coder-480b-a35b", "qwen3-next-80b-a3b", "qwen3.5-27b", "qwen3.5-35b-a3b", "qwen3.5-397b-a17b",
    "qwen3.5-9b", "seed-oss-36b", "tinyllama-1.1b", "yi-34b", "zero-bubble-1.5b", "zero-bubble-14.6b",
    "zero-bubble-28.3b", "zero-bubble-6.2b"
]
"""Models of :func:`pipeplan.plan`."""
