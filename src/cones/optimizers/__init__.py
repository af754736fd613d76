"""Optimizers: from a proposed step to the step that the belief takes."""

from cones.optimizers.adam import Adam, AdamState
from cones.optimizers.direct import Direct
from cones.optimizers.optimizer import Optimizer
from cones.optimizers.sgd import SGD, SGDState

__all__ = ["SGD", "Adam", "AdamState", "Direct", "Optimizer", "SGDState"]
