"""Optimizers of other packages by ask and tell."""

from cones.baselines.cma import CMA, CMAStrategy
from cones.baselines.evosax import PGPE, OpenES, OpenESStrategy, PGPEStrategy
from cones.baselines.sep_cma import SepCMA, SepCMAStrategy

__all__ = [
    "CMA",
    "CMAStrategy",
    "OpenES",
    "OpenESStrategy",
    "PGPE",
    "PGPEStrategy",
    "SepCMA",
    "SepCMAStrategy",
]
