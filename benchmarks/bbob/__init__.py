"""Comparison with peers on COCO's suites bbob, bbob-largescale and bbob-constrained.

    python -m benchmarks.bbob run --method pycma --suite bbob --dims 5,10 --budget 2000 --out results/bbob
    python -m benchmarks.bbob table results/bbob
    python -m benchmarks.bbob figure results/bbob --suite bbob --out bbob.png

All methods get the same start, sigma0 = 2, and a number of evaluations. Records are small: for each problem, the
evaluations at which each target was first reached.
"""
