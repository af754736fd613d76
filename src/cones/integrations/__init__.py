"""Bridges to other libraries, one file each, each behind an extra of the same name.

None of them is imported by `import cones`; import the one you need, such as `cones.integrations.optuna`.
"""
