"""Which signals ask a process to end."""

from __future__ import annotations

import signal

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
"""Ctrl-C, a scheduler or `kill`, a closed terminal, Ctrl-\\."""


def stop_signals() -> list[signal.Signals]:
    """Those that this system has; what `nohup` had ignored stays so."""
    known = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    may_be_ignored = {getattr(signal, name, None) for name in ("SIGHUP", "SIGQUIT")}
    return [
        number
        for number in known
        if number not in may_be_ignored or signal.getsignal(number) is not signal.SIG_IGN
    ]
