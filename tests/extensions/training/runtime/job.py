"""What a user's own script does inside a torchrun job: ``torchrun --nproc-per-node 2 job.py MODEL``."""

import os
import sys

from pipeplan.foundation.errors import PipeplanError
from pipeplan.model import parse_schedule
from tests.extensions.training.runtime.runs import run

PLAN = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"


def main(model: str) -> int:
    try:
        result = run(parse_schedule(PLAN), model, steps=1, verify=True, timeout=4.0)
    except PipeplanError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return error.exit_code
    if os.environ["RANK"] == "0":
        print("difference", result.max_gradient_difference)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
