"""Noise from which candidates are made."""

from cones.noise.population import Population
from cones.noise.rows import Rows
from cones.noise.seeded import DTYPES, AntitheticNoise, IndependentNoise, Noise, Rng, seed_from

__all__ = ["DTYPES", "AntitheticNoise", "IndependentNoise", "Noise", "Population", "Rng", "Rows", "seed_from"]
