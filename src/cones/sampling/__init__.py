"""Sampling: designs, reproducible noise, and populations in memory or in chunks."""

from cones.sampling.block import NoiseBlock
from cones.sampling.design import Antithetic, Auto, Design, Independent, Plan
from cones.sampling.noise import NoiseStream, Rng, seed_from
from cones.sampling.population import Population

__all__ = [
    "Antithetic",
    "Auto",
    "Design",
    "Independent",
    "NoiseBlock",
    "NoiseStream",
    "Plan",
    "Population",
    "Rng",
    "seed_from",
]
