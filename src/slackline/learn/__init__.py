"""Training: collect steps, estimate advantages, update; for one seed or many."""
