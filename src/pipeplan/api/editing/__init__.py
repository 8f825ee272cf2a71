"""Schedules that a person types or drags: does it still run, and what does it cost?"""
