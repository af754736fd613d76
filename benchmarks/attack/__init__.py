"""Attacks on the library: faults at random moments, and a count of what they broke."""
