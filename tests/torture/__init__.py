"""Random schedules, bounds, searches and plans, made from seeds and judged by something independent."""


class Found(Exception):
    """A fault that a random case shows, in one sentence."""
