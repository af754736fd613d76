"""Bridges to other libraries. Each needs the extra of its name.

`import cones` imports none of them: import the one you need, such as `cones.integrations.optuna`.
"""
