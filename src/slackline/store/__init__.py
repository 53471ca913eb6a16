"""What is kept on disk: run folders, tensors, score tables. No pickle anywhere."""
