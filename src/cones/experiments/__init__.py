"""Experiments as data: declared in TOML, run over all cores, recorded, drawn and reported."""
