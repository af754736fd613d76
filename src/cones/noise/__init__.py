"""Noise from which candidates are made."""

from cones.noise.seeded import AntitheticNoise, IndependentNoise, Noise, Rng, seed_from

__all__ = ["AntitheticNoise", "IndependentNoise", "Noise", "Rng", "seed_from"]
