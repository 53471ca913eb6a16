"""Networks of anchors, and what stands before and behind them: normaliser, distributions."""
