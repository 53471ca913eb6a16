"""The `slackline` command: one file a verb. A new verb is a new file and a new line here."""

from __future__ import annotations

import os
import sys

VERBS = {
    "list": ("List", "the suites, their variations, and the methods"),
    "train": ("Train", "train a subspace of policies on a suite's training environment"),
    "adapt": ("Adapt", "adapt a trained run to changed environments in K shots"),
    "bench": ("Bench", "train and adapt several methods, print the table, write the page"),
    "watch": ("Watch", "film a run's policies side by side on a changed environment"),
    "tune": ("Tune", "choose hyper-parameters on the training environment only"),
    "export": ("Export", "write a policy, or a line, as an ONNX model or a C header"),
    "report": ("Report", "print the table and write the page of finished runs"),
}

USAGE = """\
slackline: train a subspace of policies on one environment, adapt it to many

usage: slackline VERB [options]      slackline VERB --help explains the options

{verbs}

try it:
  slackline train cartpole --method lop --seeds 10 --out runs/line
  slackline adapt runs/line --variation LongPole --shots 10 --episodes 10
  slackline bench cartpole --methods single lop --seeds 10 --out runs/bench
"""


def main(argv: list[str] | None = None) -> None:
    """Run the command line; exits with 2 on bad input and 130 when interrupted."""
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def run(argv: list[str]) -> int:
    """Dispatch to a verb; returns the exit code."""
    from slackline.errors import Interrupted, NotNamed, SlacklineError, imported, unknown

    if not argv or argv[0] in ("-h", "--help"):
        verbs = "\n".join(f"  {name:8}{what}" for name, (_, what) in VERBS.items())
        print(USAGE.format(verbs=verbs))
        return 0
    if argv[0] == "--version":
        from importlib.metadata import version

        print(f"slackline-rl {version('slackline-rl')}")
        return 0
    try:
        verb, *rest = argv
        if verb not in VERBS:
            raise unknown("verb", verb, VERBS)
        # Verbs import JAX, which takes a second: help and errors above do without it.
        module = imported(f"slackline.cli.{verb}")
        module.parse(rest).run()
    except Interrupted as error:
        return complain(f"{error}{going_on(argv[0])}", 130)
    except NotNamed as error:
        return complain(f"error: {error.for_command(['slackline', *argv])}", 2)
    except SlacklineError as error:
        return complain(f"error: {error}", 2)
    except KeyboardInterrupt:
        return complain(f"interrupted{going_on(argv[0])}", 130)
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return complain(f"error: {error.filename or 'a file'}: {error.strerror or error}", 2)
    return 0


def going_on(verb: str) -> str:
    """How to go on with a verb that was interrupted."""
    hints = {
        "train": "; run the same command with --resume to go on",
        "bench": "; run the same command again to go on",
    }
    return hints.get(verb, "")


def complain(message: str, code: int) -> int:
    print(message, file=sys.stderr)
    return code
