"""What reports and films draw with."""
