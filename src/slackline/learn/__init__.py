"""Learning: collect, judge, improve."""
