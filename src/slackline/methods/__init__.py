"""The methods, each a combination of latent, conditioning, auxiliary and movement."""
