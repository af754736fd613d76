"""Running a strategy: minimize and resume, the loop, checkpoints, progress on the terminal."""
