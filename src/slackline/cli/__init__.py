"""The `slackline` command: one file a verb. A new verb is a new file and a new line here."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from io import TextIOWrapper
from signal import SIGINT

VERBS = {
    "list": ("List", "the suites, their variations, and the methods"),
    "train": ("Train", "train a subspace of policies on a suite's training environment"),
    "adapt": ("Adapt", "choose the best z on changed environments, within a few episodes"),
    "bench": ("Bench", "train and adapt several methods, print the table, write the page"),
    "watch": ("Watch", "film a run's policies side by side on a changed environment"),
    "tune": ("Tune", "choose hyper-parameters on the training environment only"),
    "export": ("Export", "write a policy, or a line, as an ONNX model or a C header"),
    "analyse": ("Analyse", "the paper's analyses of trained runs, each a table and figures"),
    "sweep": ("Sweep", "return against how much is changed: where each run breaks"),
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


TRACEBACK = "SLACKLINE_TRACEBACK"
"""Set, an error is shown in full; so it is with --traceback."""
CELLS_FAILED = 3
"""Some cells of a benchmark failed for good, the others are done."""
CLOSED_PIPE = 141
"""What a process that died of SIGPIPE leaves with."""


def main(argv: list[str] | None = None) -> None:
    """Run the command line; exits with 2 on bad input, 3 if cells of a benchmark failed, 1 on what
    is a bug, and 128 + the signal when asked to stop (130 for Ctrl-C). Never ends in a traceback,
    unless one was asked for."""
    from slackline.cli import users_code
    from slackline.cli.signals import leave, stoppable

    argv = sys.argv[1:] if argv is None else argv
    if "--traceback" in argv:
        argv = [word for word in argv if word != "--traceback"]
        os.environ[TRACEBACK] = "1"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # the names of files may be anything
            stream.reconfigure(errors="backslashreplace")
    try:
        with stoppable(f"interrupted{going_on(argv[0] if argv else '')}", at_once=True):
            code = flushed(run(argv, alone=True))
    except KeyboardInterrupt as error:  # before or after the verb itself
        code = 128 + getattr(error, "signum", SIGINT)
    except Exception as error:
        code = complain(f"error: {bug(error)}", 1)
    if code > 128:  # stopped: whoever asked for it waits
        leave(flushed(code))
    if users_code.ran():
        users_code.end_what_hangs()
        users_code.end_soon(code)
    sys.exit(code)


def bug(error: Exception) -> str:
    """What to say of an error that should have been another."""
    from slackline.errors import in_one_line

    return f"{type(error).__name__}: {in_one_line(error)} (--traceback shows where)"


def run(argv: list[str], *, alone: bool = False) -> int:
    """Dispatch to a verb, `alone` in its process or not; returns the exit code."""
    from slackline.cli import users_code
    from slackline.errors import (
        CellsFailed,
        Interrupted,
        NotNamed,
        SlacklineError,
        imported,
        unknown,
    )

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
        if alone:
            users_code.prepare(going_on(verb))
        module.parse(rest).run()
    except Interrupted as error:
        return complain(f"{error}{going_on(argv[0])}", 128 + error.signum)
    except NotNamed as error:
        return complain(f"error: {error.for_command(['slackline', *argv])}", 2)
    except CellsFailed as error:
        return complain(f"error: {error}", CELLS_FAILED)
    except SlacklineError as error:
        return complain(f"error: {error}{hint(error)}", 2)
    except KeyboardInterrupt as error:
        signum = getattr(error, "signum", SIGINT)
        return complain(f"interrupted{going_on(argv[0])}", 128 + signum)
    except BrokenPipeError:  # the reader (head, less) has seen enough
        return CLOSED_PIPE
    except OSError as error:
        return complain(f"error: {error.filename or 'output'}: {error.strerror or error}", 2)
    return 0


def hint(error: BaseException | None) -> str:
    """How to see the user's own error, where that was the cause."""
    if os.environ.get(TRACEBACK):
        return ""
    while error is not None:
        if getattr(error, "has_traceback", False):
            return " (--traceback shows where)"
        error = error.__cause__
    return ""


def going_on(verb: str) -> str:
    """How to go on with a verb that was interrupted."""
    hints = {
        "train": "; run the same command with --resume to go on",
        "bench": "; run the same command again to go on",
    }
    return hints.get(verb, "")


def complain(message: str, code: int) -> int:
    """Print what went wrong to stderr, if that is open, and return the exit code."""
    if os.environ.get(TRACEBACK):
        traceback.print_exc()
    with contextlib.suppress(OSError):
        print(message, file=sys.stderr, flush=True)
    return code


def flushed(code: int) -> int:
    """The exit code, once all output is out; the interpreter itself would show a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # closed from the start
            continue
        try:
            stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            closed = isinstance(error, BrokenPipeError)
            code = code or (CLOSED_PIPE if closed else complain(f"error: output: {error}", 2))
    return code
