"""What is kept on disk: run folders, score tables, tuned settings. No pickle anywhere."""
