"""torchtitan beside us."""
