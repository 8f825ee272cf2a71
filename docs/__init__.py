"""The documentation: its pages, and in ``build`` what makes those that come from code."""
