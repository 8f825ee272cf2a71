"""One configuration predicted: work into seconds, layers into stages, a schedule run, the step's end, and memory."""
