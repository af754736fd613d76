"""Evaluators: how the losses of a population are computed.

`Objective` is what is evaluated, `Evaluator` the interface of what evaluates it, `Engine` that of workers elsewhere.
"""

from cones.evaluate.candidates import Candidates, rows
from cones.evaluate.dask_engine import DaskEngine
from cones.evaluate.dispatch import DispatchEvaluator
from cones.evaluate.engine import Engine, ThreadEngine
from cones.evaluate.evaluator import Evaluator, Objective
from cones.evaluate.mapped import MapEvaluator
from cones.evaluate.pool import PoolEngine
from cones.evaluate.ray_engine import RayEngine
from cones.evaluate.serial import SerialEvaluator
from cones.evaluate.stream import Stream
from cones.evaluate.workers import Workers, evaluator_from

__all__ = [
    "Candidates",
    "DaskEngine",
    "DispatchEvaluator",
    "Engine",
    "Evaluator",
    "MapEvaluator",
    "Objective",
    "PoolEngine",
    "RayEngine",
    "SerialEvaluator",
    "Stream",
    "ThreadEngine",
    "Workers",
    "evaluator_from",
    "rows",
]
