"""Benchmarks: suites × methods, each cell a run folder."""
