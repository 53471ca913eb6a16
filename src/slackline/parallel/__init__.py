"""How a training is laid out on devices: the mesh, blocks of environments, collectives."""
