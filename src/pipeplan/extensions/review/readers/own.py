"""pipeplan's own files of configurations, alone or in the commands of a plan."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeplan.extensions.review.facts import Entry, ReviewFacts, SettingPlace
from pipeplan.foundation.documents import read_yaml
from pipeplan.trainers import OTHER

_FIELDS = {
    "tensor": "tp",
    "pipeline": "pp",
    "context": "cp",
    "data": "dp",
    "expert": "ep",
    "expert_tensor": "etp",
    "chunks": "vpp",
    "microbatch_size": "micro_batch",
    "global_batch": "global_batch",
    "microbatches": "microbatches",
    "sequence": "seq_length",
    "sequence_parallel": "sequence_parallel",
    "precision": "precision",
    "schedule": "schedule",
}
"""Settings that rules of every trainer know, by the fields of a configuration."""

_DOCUMENT = re.compile(r"<<-?[ \t]*(['\"])YAML\1[ \t]*\n(.*?)^YAML[ \t]*$", re.DOTALL | re.MULTILINE)
"""Matches a configuration in a script."""


def is_own(document: Any) -> bool:
    """Return True for the content of pipeplan's own file of a configuration."""
    if not isinstance(document, Mapping) or "cluster" not in document:
        return False
    # Imported here: the planner is large, and most files are not its own.
    from pipeplan.extensions.planning.flags import is_configuration

    return is_configuration(document)


def configuration_in(text: str) -> Mapping[str, Any] | None:
    """Return pipeplan's configuration that a script writes; None if it writes none."""
    for document in _DOCUMENT.finditer(text):
        try:
            content = read_yaml(document[2])
        except (ValueError, RecursionError):
            continue
        if is_own(content):
            return dict(content)
    return None


def read_own(document: Mapping[str, Any], file: str, folder: Path | None) -> Iterator[ReviewFacts]:
    """Yield the facts of pipeplan's configuration. Raises InputError for one that cannot be."""
    from pipeplan.extensions.planning.flags import read_configuration

    shape, machines, configuration = read_configuration(document, folder)
    values = {setting: getattr(configuration, field) for field, setting in _FIELDS.items()}
    values |= {
        "model_name": shape.name,
        "layers": shape.layers,
        "device": machines.gpu.name,
        "gpus": machines.gpus,
        "gpus_per_node": machines.per_node,
    }
    settings = {name: Entry(value, SettingPlace(file, 0, name)) for name, value in values.items()}
    yield ReviewFacts(OTHER, settings, own=(shape, machines, configuration))
