"""Which signals ask a process to end."""

from __future__ import annotations

import signal

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
"""Ctrl-C, a scheduler or `kill`, a closed terminal, Ctrl-\\."""


def stop_signals() -> list[signal.Signals]:
    """Those that this system has; what `nohup` had ignored stays so."""
    known = [signal.Signals[name] for name in NAMES if name in signal.Signals.__members__]
    return [number for number in known if not _is_kept_ignored(number)]


def _is_kept_ignored(number: signal.Signals) -> bool:
    return number.name in ("SIGHUP", "SIGQUIT") and signal.getsignal(number) is signal.SIG_IGN
