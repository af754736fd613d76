"""Exponential families other than Gaussians."""
