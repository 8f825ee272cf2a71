"""Random schedules, bounds, proofs, searches and plans, made from seeds and judged by something independent."""
