"""Gradient optimizers that move the belief."""

from cones.optimizers.adam import Adam, AdamMemory
from cones.optimizers.direct import Direct
from cones.optimizers.optimizer import Change, Optimizer
from cones.optimizers.sgd import SGD, SGDMemory

__all__ = ["SGD", "Adam", "AdamMemory", "Change", "Direct", "Optimizer", "SGDMemory"]
