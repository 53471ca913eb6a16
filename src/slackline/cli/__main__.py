"""`python -m slackline.cli` is the `slackline` command."""

from slackline.cli import main

main()
