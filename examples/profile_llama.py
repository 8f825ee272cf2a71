"""Measures the pipeline stages of a model of Llama 3 8B's shape on one GPU, and its embedding, a layer and its head apart.

    python examples/profile_llama.py --out llama-3-8b.yaml

The file is a config: ``pipeplan simulate zbv --config llama-3-8b.yaml`` takes its times and bytes per stage. Needs PyTorch
and some 40 GB of GPU memory at the default sizes; weights are random, as time does not depend on them.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from pipeplan.extensions.training.runtime.models import LLAMA_3_8B
from pipeplan.foundation.errors import PipeplanError
from pipeplan.model import Placement
from pipeplan.runtime import profile


def main() -> int:
    """Measure and write; the exit code is 2 if that cannot be."""
    options = parse()
    try:
        measure(options)
    except PipeplanError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="where to write the config file (.yaml)")
    parser.add_argument("--ranks", type=int, default=4, help="p")
    parser.add_argument("--chunks", type=int, default=1, help="stages a rank")
    parser.add_argument("--placement", choices=("loop", "v"), default="loop")
    parser.add_argument("--layers", type=int, default=LLAMA_3_8B.layers)
    parser.add_argument("--length", type=int, default=LLAMA_3_8B.length, help="tokens of a sequence")
    parser.add_argument("--microbatch", type=int, default=1, help="sequences of a microbatch")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> None:
    """Profile the stages, then the three sorts of layer apart, and write both into one file."""
    size = replace(LLAMA_3_8B, layers=options.layers, length=options.length, microbatch=options.microbatch)
    name = f"llama-3-8b shape, {size.layers} layers, {size.microbatch} x {size.length} tokens"
    v = options.placement == "v"
    placement = Placement.v(options.ranks) if v else Placement.loop(options.ranks, options.chunks)
    how = {"device": options.device, "together": False, "repeats": options.repeats}
    stages = profile(size.model(name), placement, **how)
    parts = profile(replace(size, layers=1).model("parts"), Placement.linear(3), layout=(1, 1, 1), **how)
    names = ("embedding", "one layer", "head and loss")
    apart = [f"apart: {part}, {found}" for part, found in zip(names, parts.stages, strict=True)]
    stages.write(options.out, notes=apart)
    print(options.out.read_text())


if __name__ == "__main__":
    sys.exit(main())
