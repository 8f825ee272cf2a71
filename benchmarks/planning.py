"""What plans find: the answers to twelve questions beside the best public configurations, and estimates a second.

Each question is planned as a user asks it, with nothing fixed but a precision that the question names. Beside the answer
stand the public configurations for the same model on the same kind of GPUs, scaled to the question's cluster and batch. They
are predicted by the same estimates, with the software that they ran with and with that of the answer; the better of the two
counts, so that the ratio says what the search is worth, not what the model or the software is. The second part is 10,000
estimates of valid configurations on one worker and on two.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import pipeplan
from pipeplan.extensions.planning import Configuration, Estimate, PlanResult, estimate
from pipeplan.extensions.planning.choice.branching import Space
from pipeplan.extensions.planning.choice.candidates import as_configuration
from pipeplan.extensions.planning.choice.choice import INDISTINGUISHABLE
from pipeplan.extensions.planning.choice.comparing import lost_because
from pipeplan.extensions.planning.choice.describing import in_words
from pipeplan.extensions.planning.choice.request import PlanRequest
from pipeplan.extensions.planning.choice.trials import Trial, identity, tried
from pipeplan.extensions.planning.fitting import default_limit, largest_limit
from pipeplan.extensions.planning.flags import cluster_of
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.workload import model
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.foundation.sweeps import SweepTask, sweep

CANDIDATES = 10_000

SHORT = {"tp": "tensor", "pp": "pipeline", "cp": "context", "vp": "chunks", "ep": "expert", "etp": "expert_tensor"}


@dataclass(frozen=True)
class Public:
    """Public configuration: degrees as in ``tp8 pp4 vp5``, other settings, software, and where it was published."""

    degrees: str
    software: str
    source: str
    more: dict[str, Any] = field(default_factory=dict)

    def on(self, gpus: int, software: str, **step: Any) -> Configuration:
        """Return the configuration on a number of GPUs; data-parallel ranks fill them."""
        words = (word.rstrip("0123456789") for word in self.degrees.split())
        degrees = {SHORT[word]: int(text[len(word) :]) for word, text in zip(words, self.degrees.split(), strict=True)}
        tensor, chunks = degrees.get("tensor", 1), degrees.get("chunks", 1)
        ranks = tensor * degrees.get("pipeline", 1) * degrees.get("context", 1)
        usual = {
            "data": gpus // ranks,
            "sequence_parallel": tensor > 1,
            "schedule": "interleaved-1f1b" if chunks > 1 else "1f1b",
        }
        return Configuration(**(usual | degrees | step | self.more), software=software)


@dataclass(frozen=True)
class Question:
    """Question that a team would ask, with public configurations for it."""

    name: str
    model: str
    cluster: str | dict[str, Any]
    global_batch: int
    sequence: int
    public: tuple[Public, ...]
    fix: dict[str, str] = field(default_factory=dict)


NEMO, BRIDGE, CORE, FSDP = "nemo", "megatron-bridge-26.04", "megatron-core-overlapped", "torchtitan"

QUESTIONS = (
    Question(
        "Llama-3 8B on 8 H100", "llama3-8b", "h100-sxm:8x1", 128, 8192,
        (
            Public("cp2", BRIDGE, "Megatron-Bridge, llama3_8b_pretrain_8gpu_h100_bf16_config"),
            Public("", FSDP, "torchtitan, llama3_8b", {"zero": 3, "recompute": ("selective-op",)}),
        ),
    ),
    Question(
        "Llama-3 70B on 64 H100", "llama3-70b", "h100-sxm:8x8", 128, 8192,
        (
            Public("tp4 pp4 cp2 vp5", BRIDGE, "Megatron-Bridge, llama3_70b_pretrain_64gpu_h100_bf16_config"),
            Public("cp2", "automodel", "NeMo AutoModel", {"zero": 3, "recompute": ("layernorm",)}),
            Public("tp8", FSDP, "torchtitan, llama3_70b", {"zero": 3, "microbatch_size": 8, "recompute": ("full",)}),
        ),
    ),
    Question(
        "Llama-3.1 405B on 1,024 H100", "llama3.1-405b", "h100-sxm:8x128", 512, 8192,
        (
            Public("tp8 pp8 cp2 vp8", BRIDGE, "Megatron-Bridge, llama31_405b_pretrain_1024gpu_h100_bf16_config"),
            Public("tp8 pp8 cp4 vp2", NEMO, "Megatron-Bridge, llama31_405b_pretrain_256gpu_h100_bf16_config"),
            Public("tp8 pp16", CORE, "arXiv 2407.21783 table 4"),
        ),
    ),
    Question(
        "Mixtral 8x22B on 128 A100", "mixtral-8x22b", "a100-80gb:8x16", 256, 4096,
        (
            Public("tp2 pp8 ep8", CORE, "arXiv 2504.14960, MCore with folding"),
            Public("tp2 pp8 ep4 etp2", CORE, "arXiv 2504.14960, MCore"),
            Public("tp4 pp4 ep8", CORE, "Megatron-LM, parallelism-guide.md"),
            Public("tp2 ep8", CORE, "arXiv 2504.14960, FSDP and EP", {"zero": 3}),
        ),
    ),
    Question(
        "DeepSeek-V3 on 2,048 H800", "deepseek-v3", "h800-sxm:8x256", 15360, 4096,
        (
            Public(
                "pp16 ep64", "hai-llm", "arXiv 2412.19437",
                {"schedule": "dualpipe", "precision": "fp8", "recompute": ("layernorm", "mla_up_proj")},
            ),
            Public(
                "tp2 pp8 vp4 ep64", BRIDGE, "Megatron-Bridge, deepseek_v3_pretrain_1024gpu_h100_fp8sc_config",
                {"precision": "fp8", "recompute": ("mlp", "mla_up_proj")},
            ),
        ),
    ),
    Question(
        "Qwen3-235B on 256 H100", "qwen3-235b-a22b", "h100-sxm:8x32", 2048, 4096,
        (
            Public("tp2 pp8 vp4 ep32", BRIDGE, "Megatron-Bridge, qwen3_235b_a22b_pretrain_256gpu_h100_bf16_config"),
            Public(
                "tp2 pp8 vp3 ep32", BRIDGE,
                "Megatron-Bridge, qwen3_235b_a22b_pretrain_256gpu_h100_bf16_hybridep_dev_config",
                {"recompute": ("layernorm", "moe_act")},
            ),
        ),
    ),
    Question(
        "gpt-oss-120b on 64 H200", "gpt-oss-120b", "h200:8x8", 1280, 4096,
        (
            Public(
                "pp4 ep8", BRIDGE, "Megatron-Bridge, gpt_oss_120b_pretrain_64gpu_h100_bf16_config",
                {"recompute": ("layernorm", "moe_act")},
            ),
            Public(
                "ep8", BRIDGE, "Megatron-Bridge, gpt_oss_120b_pretrain_64gpu_b200_bf16_config",
                {"microbatch_size": 4, "recompute": ("layernorm", "moe_act")},
            ),
            Public(
                "", "automodel", "NeMo AutoModel",
                {"zero": 3, "microbatch_size": 2, "recompute": ("layernorm", "moe_act")},
            ),
        ),
    ),
    Question(
        "GPT-3 175B on 512 A100", "gpt3-175b", "a100-80gb:8x64", 1536, 2048,
        (
            Public("tp8 pp8 vp3", CORE, "arXiv 2205.05198", {"recompute": ("core_attn",)}),
            Public("tp8 pp8 vp6", CORE, "arXiv 2402.15627"),
            Public("tp4 pp8 vp6", NEMO, "Megatron-Bridge, gpt3_175b", {"microbatch_size": 1}),
        ),
    ),
    Question(
        "Llama-2 7B on 16 A100-40GB over 25 Gb/s", "llama2-7b",
        {"gpu": "a100-40gb", "per_node": 8, "nodes": 2, "between": {"bandwidth": "25 Gb/s"}}, 256, 4096,
        (
            Public(
                "", "llm-foundry-pure", "llm-foundry, 7b on a100_40gb",
                {"zero": 3, "microbatch_size": 4, "recompute": ("full",)},
            ),
            Public("tp2", NEMO, "NeMo, llama2_7b"),
            Public("pp2", NEMO, "NeMo long sequence performance"),
            Public("tp4", CORE, "arXiv 2104.04473, 7.5B", {"recompute": ("full",)}),
        ),
    ),
    Question(
        "Llama-3 70B at 32k on 256 H100", "llama3-70b", "h100-sxm:8x32", 128, 32768,
        (
            Public("tp8 pp2 cp2", BRIDGE, "Megatron-Bridge, llama3_70b_pretrain_32gpu_h100_bf16_16k_config"),
            Public("tp8 pp4 cp4", BRIDGE, "between Megatron-Bridge's 16k and 64k configurations"),
            Public("tp8 pp4 cp8", BRIDGE, "Megatron-Bridge, llama3_70b_pretrain_256gpu_h100_bf16_64k_config"),
        ),
    ),
    Question(
        "Llama-3 70B at 128k on 256 H100", "llama3-70b", "h100-sxm:8x32", 32, 131072,
        (
            Public("tp8 pp4 cp8", BRIDGE, "Megatron-Bridge, llama3_70b_pretrain_256gpu_h100_bf16_64k_config"),
            Public("tp8 pp2 cp16", BRIDGE, "arXiv 2407.21783 table 4, 131,072 tokens", {}),
        ),
    ),
    Question(
        "Llama-3 70B FP8 on 64 B200", "llama3-70b", "b200:8x8", 256, 8192,
        (
            Public(
                "", BRIDGE, "Megatron-Bridge, llama3_70b_pretrain_64gpu_b200_fp8cs_config",
                {"zero": 3, "precision": "fp8"},
            ),
            Public(
                "tp2 pp4 vp5", BRIDGE, "Megatron-Bridge, llama3_70b_pretrain_64gpu_b200_fp8mx_config",
                {"precision": "fp8"},
            ),
        ),
        {"precision": "fp8"},
    ),
)  # fmt: skip


def answer(question: Question, seconds: float, workers: int) -> tuple[float, float] | None:
    """Print the answer to a question beside the best public configuration.

    Returns
    -------
        Public over planned step time, and public over that of the fastest configuration that the search saw: the simplest
        answer within the error of predictions gives up the difference. None if nothing fits.
    """
    begin = time.monotonic()
    planned = pipeplan.plan(
        question.model,
        cluster_of(question.cluster),
        global_batch=question.global_batch,
        sequence=question.sequence,
        fix=question.fix,
        seconds=seconds,
        workers=workers,
    )
    took = time.monotonic() - begin
    print(f"{question.name}, {question.global_batch:,} sequences of {question.sequence:,} tokens")
    if planned.best is None:
        print(f"  nothing fits: {planned.miss}")
        return None
    print(f"  plan    {_line(planned.best)}; {planned.fit}")
    notes = (
        f"gives up {planned.given_up:.1%}: {planned.simpler_because}" if planned.simpler_because else "",
        f"unusual: {'; '.join(planned.unusual)}" if planned.unusual else "",
        ""
        if planned.pipelined is None
        else f"pipeline {'won' if planned.pipelined.won else 'lost'}: {planned.pipelined.because}",
    )
    for note in filter(None, notes):
        print(f"          {note}")
    ratio = _compared(question, planned)
    counts = planned.counts
    memory = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    state = "complete" if planned.complete else f"at most {planned.optimality_gap:.1%} better exists"
    print(
        f"  search  {state}; {took:.1f} s, {memory / 1024:.0f} MiB at most a process; {counts.legal:,} valid, "
        f"{counts.over_memory:,} exceed memory, {counts.too_slow:,} ruled out by bounds, {counts.estimated:,} estimated"
    )
    return None if ratio is None else (ratio, ratio * (1 + planned.given_up))


def best_public(question: Question, software: str) -> tuple[Estimate, Public] | None:
    """Return the fastest public configuration that fits, with its own software or another; None if none fits."""
    shape, machines = model(question.model), cluster_of(question.cluster)
    step: dict[str, Any] = {"global_batch": question.global_batch, "sequence": question.sequence}
    space = Space.of(PlanRequest(model=shape, cluster=machines, memory_limit=default_limit(machines), **step))
    fitting: list[tuple[Estimate, Public]] = []
    for public in question.public:
        for name in dict.fromkeys((public.software, software)):
            configuration = public.on(machines.gpus, name, **step, **question.fix)
            # Stages of published layouts have lengths of their own, which papers rarely print.
            for laid in space.layouts(configuration):
                try:
                    there = estimate(shape, machines, laid, with_error_bar=False)
                except PipeplanError:  # a trainer that does not support what another one published
                    continue
                if there.peak_bytes <= largest_limit(machines):
                    fitting.append((there, public))
    return min(fitting, key=lambda pair: pair[0].step_time, default=None)


def _compared(question: Question, planned: PlanResult) -> float | None:
    """Print the best public configuration that fits, and why it lost or won; return its step time over the plan's."""
    best = planned.best
    assert best is not None
    found = best_public(question, best.configuration.software)
    if found is None:
        print("  public  none fits")
        return None
    there, public = found
    ratio = there.step_time / best.step_time
    print(f"  public  {_line(there)}; {public.source}")
    why = lost_because(there, best, planned.memory_limit_gib * GIBIBYTE) if ratio >= 1 else "given up for simplicity"
    missed = ratio * (1 + INDISTINGUISHABLE) < 1
    print(f"  public / plan {ratio:.3f}: {'MISSED, better beyond the tie-break' if missed else why}")
    return ratio


def _line(found: Estimate) -> str:
    low, high = (0.0, 0.0) if found.error_bar is None else found.error_bar.step_time_s
    interval = f" ({low:.3f}-{high:.3f})" if found.error_bar is not None else ""
    here = found.configuration
    return f"{found.step_time:.3f} s{interval}, {found.peak_memory_gib:.1f} GiB: {in_words(here)}, {here.software}"


def sample(count: int) -> tuple[PlanRequest, list[Configuration]]:
    """Legal configurations of Llama-3 70B on 512 GPUs, drawn evenly over frames and their variants."""
    machines = cluster("h100-sxm:8x64")
    request = PlanRequest(
        model=model("llama3-70b"),
        cluster=machines,
        global_batch=1024,
        sequence=8192,
        memory_limit=default_limit(machines),
    )
    space, choose = Space.of(request), random.Random(0)
    found: dict[Configuration, None] = {}
    frames = [frame for frame in space.frames() if space.orders(frame)]
    while len(found) < count:
        frame = choose.choice(frames)
        order, saving = choose.choice(space.orders(frame)), choose.choice(space.savings(frame))
        found[as_configuration(request, {**frame, **order, **saving})] = None
    return request, list(found)


def candidates_a_second(count: int) -> None:
    """Print how many estimates a second one worker makes, and two."""
    request, configurations = sample(count)
    here = request.cluster
    trials = [Trial(each, here.nodes, here.per_node) for each in configurations]
    rates = []
    for workers in (1, 2):
        begin = time.monotonic()
        finished = sum(
            each.failure is None
            for each in sweep(
                partial(tried, model=request.model, cluster=here, calibration=None),
                [SweepTask(trial.key, trial) for trial in trials],
                answer=Estimate,
                asked=identity(request.model, here, None),
                workers=workers,
            )
        )
        rates.append(count / (time.monotonic() - begin))
        print(f"  workers {workers}: {rates[-1]:7.0f} candidates a second, {finished:,} of {count:,} estimated")
    print(f"  two workers / one: {rates[1] / rates[0]:.2f}")


def main() -> None:
    """All of it, each question in a process of its own so that its memory is its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, help="answer this question alone, counted from 0")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--candidates", type=int, default=CANDIDATES)
    given = parser.parse_args()
    if given.only is not None:
        pair = answer(QUESTIONS[given.only], given.seconds, given.workers)
        print("ratios", *(pair or ()))
        return
    ratios: list[float] = []
    fastest: list[float] = []
    for number in range(len(QUESTIONS)):
        options = ["--only", str(number), "--seconds", str(given.seconds), "--workers", str(given.workers)]
        command = [sys.executable, "-m", "benchmarks.planning", *options]
        *lines, last = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        print(*lines, sep="\n", flush=True)
        for values, word in zip((ratios, fastest), last.split()[1:], strict=False):
            values.append(float(word))
    print(f"public / plan: {min(ratios):.3f} at least, median {median(ratios):.3f}, of {len(ratios)} questions")
    print(f"public / fastest seen, before the simplest is chosen: median {median(fastest):.3f}")
    if given.candidates:
        print(f"{given.candidates:,} candidates, Llama-3 70B on 512 GPUs")
        candidates_a_second(given.candidates)


if __name__ == "__main__":
    main()
