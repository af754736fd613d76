"""Where a run stands: its state, its history, and its stop criteria."""
