"""ColossalAI beside us."""
