"""What makes the methods differ: a latent, a conditioning and an auxiliary."""
