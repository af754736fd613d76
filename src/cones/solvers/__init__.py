"""Solvers of the step problem."""

from cones.solvers.cone_program import SCS, Clarabel, ConeProgram, Cvxpy, Mosek
from cones.solvers.dual import Dual
from cones.solvers.solver import Solver
from cones.solvers.step_problem import solve_step

__all__ = ["SCS", "Clarabel", "ConeProgram", "Cvxpy", "Dual", "Mosek", "Solver", "solve_step"]
