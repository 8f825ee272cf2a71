"""ELF beside us."""
