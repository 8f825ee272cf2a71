"""Search for better schedules and layouts, with bounds and proofs."""
