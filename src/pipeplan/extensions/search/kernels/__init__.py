"""The solver's hot loops, and the flat arrays that they work on."""
