"""Readers of configurations: text of any trainer to facts, without executing anything."""

from __future__ import annotations

from pipeplan.extensions.review.readers.reading import MOST_BYTES, read_configurations, read_text_of
from pipeplan.extensions.review.readers.shell_words import is_quoted
from pipeplan.extensions.review.readers.source import Reading, SourceText

__all__ = ["MOST_BYTES", "Reading", "SourceText", "is_quoted", "read_configurations", "read_text_of"]
