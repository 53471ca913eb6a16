"""Watching: the policies of a trained run side by side, as a film and as a strip of stills."""
