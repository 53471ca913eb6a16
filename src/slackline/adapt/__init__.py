"""Adaptation: try a few z's on the changed environment, keep the best."""
