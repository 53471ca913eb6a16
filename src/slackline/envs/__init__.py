"""Environments as pure JAX functions; one file each."""
