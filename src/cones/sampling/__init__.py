"""Noise from which candidates are made."""

from cones.sampling.block import Rows
from cones.sampling.noise import DTYPES, AntitheticNoise, IndependentNoise, Noise, Rng, seed_from
from cones.sampling.population import Population

__all__ = ["DTYPES", "AntitheticNoise", "IndependentNoise", "Noise", "Population", "Rng", "Rows", "seed_from"]
