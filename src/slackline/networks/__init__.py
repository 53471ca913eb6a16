"""Networks whose weights are combinations of anchors, observation normalisers, distributions."""
