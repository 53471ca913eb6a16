"""What is kept on disk: run folders and score tables. No pickle anywhere."""
