"""Atomic files, tensors, a cache of what can be made again. Knows none of our nouns."""
