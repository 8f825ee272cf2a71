"""Readers of configurations: text of any trainer to facts, without executing anything."""

from __future__ import annotations

from pipeplan.reviewing.readers.reading import MOST_BYTES, read_configurations, read_text_of
from pipeplan.reviewing.readers.shell_words import is_quoted
from pipeplan.reviewing.readers.source import Reading, SourceText

__all__ = ["MOST_BYTES", "Reading", "SourceText", "is_quoted", "read_configurations", "read_text_of"]
