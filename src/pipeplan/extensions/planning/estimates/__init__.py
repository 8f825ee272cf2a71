"""Estimate of one configuration: work to seconds, layers to stages, the schedule's run, the end of the step, and memory."""
