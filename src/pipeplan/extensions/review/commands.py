"""``pipeplan review``."""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipeplan.answers import ShownOptions, require_outputs
from pipeplan.cli.answers import deliver, print_answer
from pipeplan.cli.options import command, output_option
from pipeplan.cli.progress import progress_bar
from pipeplan.costs import Options, option
from pipeplan.extensions.review.answers.result import PATCH_ENDINGS, SARIF_ENDING
from pipeplan.extensions.review.answers.review import ReviewOptions, reviewed
from pipeplan.foundation.files import require_apart

EXITS = {"clean": 0, "findings": 1, "unreadable": 2, "unknown": 3}
"""Exit codes by the verdict of a review."""


@dataclass(frozen=True, kw_only=True)
class ReviewOutputOptions(Options):
    """Files of a review, and what its exit code says."""

    # A table, read by columns: formatted, it would have a line for every argument.
    # fmt: off
    strict: bool = option(
        False, kind="flag", group="output", usual=False,
        help="Exit with 1 in place of 3.",
    )
    hook: bool = option(
        False, kind="flag", group="output", usual=False,
        help="Review the files of a commit: skip those without a configuration, compare none, and exit with 0 in place "
        "of 3.",
    )
    annotate: bool = option(
        False, kind="flag", group="output", usual=False, help="Print the findings as annotations of a GitHub workflow, too.",
    )
    # fmt: on
    output: tuple[Path, ...] = output_option(
        "File to write; repeatable. The suffix selects the content: .json everything; .patch .diff the patch; .sarif the "
        "findings for code scanning."
    )


@command
def review(
    *files: Path,
    options: ReviewOptions,
    beside: ReviewOutputOptions,
    shown: ShownOptions,
    json: bool = False,
) -> int:
    """Review a configuration that you already have, and repair it.

    Answers whether it starts, whether it is right, where it loses, and what to change. Reads a trainer's arguments (shell
    script, YAML, TOML, JSON, the block in a log), a Python recipe or a layout; nothing in it is executed. Ends with the
    patch. Every configuration in a folder is reviewed, with a summary of one page; two files are compared.

    Exits with 0 if there are neither errors nor warnings, with 1 if there are, with 2 if a file cannot be read, and with 3
    if there are none but the layers, the degrees or the trainer of a configuration are unknown.

    Parameters
    ----------
    files
        Files with configurations, or folders.
    """
    require_outputs(beside.output, ("record",), what="a review", own=(*PATCH_ENDINGS, SARIF_ENDING))
    require_apart(beside.output, [path for path in files if not path.is_dir()])
    patches = any(path.name.lower().endswith(PATCH_ENDINGS) for path in beside.output)
    with progress_bar("reviewing", quiet=not any(path.is_dir() for path in files)) as bar:
        result = reviewed(files, options, hook=beside.hook, patches=patches, show=bar.show)
    # The patch quotes the files, whose lines must not be commands of the workflow.
    token = secrets.token_hex() if beside.annotate and not json else ""
    if token:
        print(f"::stop-commands::{token}")
    deliver(result, beside.output, json=json, text=partial(print_answer, result, shown))
    if token:
        print(f"::{token}::")
    if beside.annotate:
        print("\n".join(result.annotations), file=sys.stderr if json else sys.stdout)
    if result.verdict == "unknown" and (beside.strict or beside.hook):
        return 1 if beside.strict else 0
    return EXITS[result.verdict]
