"""``pipeplan review``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeplan.answers import require_outputs
from pipeplan.cli.answers import deliver
from pipeplan.cli.options import command, output_option
from pipeplan.costs import Options
from pipeplan.extensions.review.answers.result import PATCH_ENDINGS
from pipeplan.extensions.review.answers.review import ReviewOptions, reviewed
from pipeplan.foundation.files import require_apart, require_writable


@dataclass(frozen=True, kw_only=True)
class ReviewOutputOptions(Options):
    """Files of a review."""

    output: tuple[Path, ...] = output_option(
        "File to write; repeatable. The suffix selects the content: .json everything; .patch .diff the patch."
    )


@command
def review(
    *files: Path,
    options: ReviewOptions,
    beside: ReviewOutputOptions,
    json: bool = False,
) -> int:
    """Review a configuration that you already have, and repair it.

    Answers whether it starts, whether it is right, where it loses, and what to change. Reads a trainer's arguments (shell
    script, YAML, TOML, JSON, the block in a log), a Python recipe or a layout; nothing in it is executed. Ends with the
    patch. Exits with 0 if there are neither errors nor warnings, with 1 if there are, and with 2 if a file cannot be read.

    Parameters
    ----------
    files
        Files with configurations.
    """
    for path in beside.output:
        if path.name.lower().endswith(PATCH_ENDINGS):
            require_writable(path)
        else:
            require_outputs([path], ("record",), what="a review")
    require_apart(beside.output, files)
    result = reviewed(files, options)
    deliver(result, beside.output, json=json)
    return 0 if result.clean else 1
