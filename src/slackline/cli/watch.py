"""slackline watch"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import tyro

from slackline.cli.options import Devices, count, number, optional
from slackline.cli.own import changed_by_hand, suite_to_play
from slackline.cli.parsing import parse_as
from slackline.errors import SlacklineError, require_count, require_number, unknown
from slackline.methods.latent import Latent
from slackline.progress import STDERR, waiting
from slackline.runtime import set_up_jax
from slackline.store.pretrained import folder_beside, located
from slackline.store.run import RunFolder
from slackline.suites.suite import TRAIN, Suite, Variation

if TYPE_CHECKING:
    from slackline.subspace import Subspace

SHOTS = 5


@dataclass
class Watch:
    """Watch the policies of a trained run side by side, as a film and as a strip of stills.

    Every policy runs one whole episode from the same start; the best is marked. Needs matplotlib.
    """

    path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The run folder that `slackline train` made, or pretrained:NAME."""
    variation: str | None = None
    """The changed environment (`slackline list` names them). Default: Train, the unchanged one."""
    suite: str | None = None
    """Watch on the variations of another suite, with the same observations and actions. Default:
    the one trained on."""
    env: tyro.conf.UseAppendAction[tuple[tuple[str, ...], ...]] = ()
    """The environment of yours that the run was trained on, named again (nothing is imported or
    made because a file names it): gym:ID, envpool:ID or module:function. All of them, if
    variations have environments of their own. It has to have a render() for render_mode
    rgb_array."""
    to: str | None = None
    """Watch on this other environment of yours instead: gym:ID, envpool:ID or module:function."""
    kwargs: tuple[str, ...] = ()
    """Keyword arguments that make the environment of --to, NAME=VALUE; without --to, the one
    trained on."""
    shots: Annotated[int | None, optional(count, "INT", str(SHOTS))] = None
    """K: how many values of z to watch, spread as `slackline adapt` spreads them."""
    z: tuple[str, ...] = ()
    """Watch these z's instead: one number each on a line, centre, anchors ('#3'), or numbers with
    commas."""
    seed: Annotated[int | None, optional(count, "INT", "first")] = None
    """Which seed of the run."""
    steps: Annotated[int | None, optional(count, "INT", "200")] = None
    """How many steps of the episode to show; returns are of the whole episode all the same."""
    every: Annotated[int | None, optional(count, "INT", "real time")] = None
    """Steps from one frame of the film to the next."""
    fps: Annotated[float | None, optional(number, "FLOAT", "real time, 10 to 25")] = None
    """Frames per second."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """The film: .gif, .webp or .apng. The strip goes beside it as .png. Default:
    watch-VARIATION.gif in the run folder."""
    devices: Devices = None
    """CPU devices to use."""

    def run(self) -> None:
        from slackline.analyses.strips import file_name, table_of
        from slackline.drawing.sheet import styled
        from slackline.report.table import show
        from slackline.watch.files import check_target, write_film, write_strip
        from slackline.watch.film import Timing
        from slackline.watch.watched import watch

        styled()  # no matplotlib, no episodes
        set_up_jax(self.devices)
        run = RunFolder(located(self.path))
        run.insist_on_finished()
        suite = suite_to_play(run, self.suite, self.env, self.to)
        variation, subspace = self.changed(suite), replace(self.subspace(run), home=suite)
        zs = self.zs(subspace.method.latent.drawn_by(subspace.seed))
        if self.every is not None:
            require_count("every", self.every, high=suite.horizon)
        if self.fps is not None:
            require_number("fps", self.fps, low=1.0, high=50.0)
        out = self.out or folder_beside(self.path) / f"watch-{file_name(variation.name)}.gif"
        check_target(out)
        with waiting(f"running {len(zs)} policies on {variation.name}"):
            watched = watch(subspace, variation, zs, self.steps)
        with drawing("drawing") as on_frame:
            timing = Timing.of(watched.seconds or watched.pace, self.every, self.fps)
            film = write_film(watched, timing, out, on_frame)
        strip = write_strip(watched, out)
        show(table_of(watched, subspace.method.latent, zs))
        print(f"film: {film}")
        print(f"strip: {strip}")

    def changed(self, suite: Suite) -> Variation:
        """What to watch on."""
        if self.to is None and not self.kwargs:
            return suite.variation(self.variation or TRAIN.name)
        for flag, given in (("--variation", self.variation), ("--suite", self.suite)):
            if given:
                raise SlacklineError(f"{flag} and --to (or --kwargs) exclude each other")
        return changed_by_hand(suite, self.to, self.kwargs)

    def subspace(self, run: RunFolder) -> Subspace:
        """The seed to watch."""
        by_seed = {s.seed: s for s in run.subspaces()}
        if self.seed is None:
            return next(iter(by_seed.values()))
        if self.seed not in by_seed:
            raise unknown(f"seed of {self.path}", str(self.seed), map(str, by_seed))
        return by_seed[self.seed]

    def zs(self, latent: Latent) -> np.ndarray:
        """The z's to watch, (K, size)."""
        from slackline.watch.watched import MAX_PANELS

        if not self.z:
            shots = SHOTS if self.shots is None else self.shots
            require_count("shots", shots, high=MAX_PANELS)
            return latent.candidates(shots)
        if self.shots is not None:
            raise SlacklineError("--z and --shots exclude each other; give one of them")
        require_count("number of z's", len(self.z), high=MAX_PANELS)
        return np.stack([parse_z(word, latent) for word in self.z])


def parse_z(word: str, latent: Latent) -> np.ndarray:
    """0.75 -> the z that it stands for on a line; 0.2,0.3,0.5 -> just that; #3 -> the anchor"""
    try:
        numbers = [float(part) for part in word.split(",")]
    except ValueError:
        return latent.parse(word)
    return latent.parse(numbers[0] if len(numbers) == 1 else numbers)


@contextmanager
def drawing(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar that counts frames; None where there is no terminal."""
    from rich.progress import Progress

    if not STDERR.is_terminal:
        yield None
        return
    with Progress(console=STDERR, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda drawn, of: progress.update(task, completed=drawn, total=of)


def parse(argv: list[str]) -> Watch:
    return parse_as("watch", Watch, argv)
