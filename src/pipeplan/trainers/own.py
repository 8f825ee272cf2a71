"""pipeplan as a trainer: its own command simulates a plan's pipeline with the planned stage costs."""

from pipeplan.trainers.trainer import Trainer

TRAINER = Trainer(name="pipeplan", title="pipeplan", software="megatron-core")
