"""Binary and mixed problems: `python -m benchmarks.spaces run|table`; see `__main__`."""
