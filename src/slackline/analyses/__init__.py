"""The paper's analyses, and some that it lacks: one file a kind, and one line in `catalogue.py`."""
