"""What `slackline` offers to Python: train, load, and the line that both return.

Here (and in `cli`) names become objects: what is inside takes suites, not their names. Loading,
acting and ask/tell need NumPy and safetensors alone; whatever plays episodes imports JAX and the
simulator when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from slackline.adapt.asktell import AskTell
from slackline.adapt.catalogue import WITH_BUDGET, spending
from slackline.errors import SlacklineError, imported, require_count, spelt
from slackline.methods.catalogue import FAN
from slackline.store.pretrained import located
from slackline.store.record import (
    RECORD,
    SUBSPACE,
    insist_on_own,
    insist_on_seeds,
    read_record,
    spec_in,
)
from slackline.subspace import Subspace, load_subspaces

if TYPE_CHECKING:
    from slackline.adapt.critic import Ranking
    from slackline.adapt.kshot import Adaptation, KShot
    from slackline.analyses.analysis import Finding, Subject
    from slackline.envs.api import Params
    from slackline.envs.host import HostEnv
    from slackline.learn.hyper import Hyper
    from slackline.progress import OnTick
    from slackline.store.run import RunFolder
    from slackline.suites.resolve import Task
    from slackline.suites.suite import Suite, Variation


@dataclass(frozen=True, repr=False)
class Line(Subspace):
    """A subspace that can be adapted and exported: what `train` and `load` return."""

    @staticmethod
    def of(subspace: Subspace) -> Line:
        return Line(**{field.name: getattr(subspace, field.name) for field in fields(Subspace)})

    def adapter(
        self,
        name: str | None = None,
        budget: int | None = None,
        *,
        shots: int | None = None,
        episodes: int | None = None,
        **options: Any,
    ) -> AskTell:
        """Ask/tell adaptation with a budget of episodes that you run yourself.

        `name` is one of `slackline.ADAPTERS`; `options` are its fields (`floor=100.0` of "safe").
        Left out, it is the one that chose best (`docs/adapters.md`), with 20 episodes. `shots` and
        `episodes` are the paper's grid: so many z's, so many episodes each.
        """
        if name is None and shots is None and episodes is None:
            name = WITH_BUDGET
        chosen = spending(self.method.latent, name, budget, shots, episodes, **options)
        return AskTell(chosen.adapter, self, chosen.budget)

    def adapt(
        self,
        variation: str | Variation | HostEnv | Callable[[Params], Params],
        shots: int | None = None,
        episodes: int | None = None,
        score_episodes: int | None = None,
        suite: str | Suite | None = None,
        *,
        adapter: str | None = None,
        budget: int | None = None,
        stop_hopeless: float | None = None,
        progress: bool = True,
        **options: Any,
    ) -> Adaptation:
        """Choose a z on a changed environment, and score it on fresh episodes beside the default z.

        `variation` is a name of the suite's, or a function from the environment's standard
        parameters to changed ones; on environments outside JAX also another environment, as from
        `sl.gymnasium`. `adapter` and `budget` are as for `adapter()`; with `shots` or `episodes` it
        is the paper's grid, and counts left out are the suite's protocol. `suite` is another one
        than it was trained on, with the same observations and actions: `suite="halfcheetah-dev"`.
        `stop_hopeless=3.0` stops episodes that are so many standard deviations of a return behind
        the best one before; `saved_steps` of what is found counts what that saved.
        `progress` shows a spinner where there is a terminal.
        """
        adapt_one, found = imported("slackline.adapt.one").adapt_one, _named(suite)
        options["stop_hopeless"] = stop_hopeless
        with imported("slackline.progress").waiting(f"adapting {self.suite}", shown=progress):
            return adapt_one(
                self, variation, adapter, budget, shots, episodes, score_episodes, found, **options
            )

    def ranking(self, observations: Any) -> Ranking:
        """z's in the order of what the critic expects of them, given first observations (num, size)
        of episodes, or one (size,): it costs no episode, and knows nothing of what has changed but
        what these show."""
        from slackline.adapt.critic import ranked

        return ranked(self, observations)

    def export(
        self,
        path: str | Path,
        z: Any = None,
        *,
        as_line: bool = False,
        to: Literal["onnx", "c"] | None = None,
    ) -> Path:
        """Write the policy at z for other runtimes: an ONNX model (.onnx) or a C header (.h).

        With `as_line` the model has z as an input beside the observation. `to` says which kind it
        is, where the path does not end so.
        """
        from slackline.export import export

        return export(self, path, z, as_line=as_line, to=to)


def train(
    suite: Task,
    method: str | None = None,
    *,
    seed: int = 0,
    steps: int | None = None,
    hyper: Hyper | None = None,
    preset: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    on_tick: OnTick | None = None,
    keep_at: float | None = None,
    snapshots: int = 0,
    from_run: str | Path | None = None,
    progress: bool = True,
    **options: Any,
) -> Line:
    """Train one subspace of policies on a suite's training environment.

    Without a `method` it is the recommended one: a line of vigour ("vigour") where actions are
    continuous and no pictures are seen, else anchors that trust their sensors differently
    ("senses"). The paper's line is "lop". Hyper-parameters are `hyper`, or one of the suite's
    presets ("paper" unless said otherwise; robots have "fast"). `options` are the method's
    (`beta=0.1`, `penalty="vector"`).
    With `out` the run is kept in that folder, checkpoints included, and `resume=True` continues one
    that was interrupted; `keep_at=0.5` also keeps the state after half of the training,
    `snapshots=10` the policies at ten moments of it. From such a state of a single policy's run,
    `from_run`, a fan can begin. `progress` shows a bar on a terminal, unless `on_tick` is given: a
    function that gets each `Tick`.
    """
    if several := {"seeds", "first_seed"} & set(options):
        raise SlacklineError(f"train() has no {min(several)}; sl.train_seeds trains several seeds")
    trained = train_seeds(
        suite,
        method,
        seeds=1,
        first_seed=seed,
        steps=steps,
        hyper=hyper,
        preset=preset,
        out=out,
        resume=resume,
        on_tick=on_tick,
        keep_at=keep_at,
        snapshots=snapshots,
        from_run=from_run,
        progress=progress,
        **options,
    )
    return trained[0]


def train_seeds(
    suite: Task,
    method: str | None = None,
    *,
    seeds: int = 10,
    first_seed: int = 0,
    steps: int | None = None,
    hyper: Hyper | None = None,
    preset: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    on_tick: OnTick | None = None,
    keep_at: float | None = None,
    snapshots: int = 0,
    from_run: str | Path | None = None,
    progress: bool = True,
    **options: Any,
) -> list[Line]:
    """Train several seeds as one compiled program; otherwise like `train`."""
    require_count("seeds", seeds, high=10_000)
    if seeds != 1:
        require_count("first_seed", first_seed, low=0, high=2**32 - seeds)
    # One seed goes by as it is: what it may be is checked, and said, with the rest.
    numbers = (first_seed,) if seeds == 1 else tuple(range(first_seed, first_seed + seeds))
    training = imported("slackline.training")
    found = imported("slackline.suites.resolve").as_suite(suite)
    method = FAN if method is None and from_run is not None else method
    config = training.configure(
        found, method, seeds=numbers, steps=steps, hyper=hyper, preset=preset, **options
    )
    single = None
    if from_run is not None:
        run = imported("slackline.store.run").RunFolder(from_run)
        config, single = training.beginning_from(config, found, run)
    shown, title = progress and on_tick is None, f"{config.method} on {found.name}"
    with imported("slackline.progress").training_bar(title, found.digits, shown=shown) as bar:
        trained = training.run_training(
            config,
            out,
            suite=found,
            resume=resume,
            on_tick=on_tick or bar,
            keep_at=keep_at,
            snapshots=snapshots,
            single=single,
        )
    return list(map(Line.of, trained))


def suite(name: str) -> Suite:
    """The suite called `name`; or that of an environment of your own, as gym:ID, envpool:ID,
    module:function or a suite file (.toml), whose code is imported and called."""
    return imported("slackline.suites.resolve").suite(name)


def adapt_many(
    subspaces: Sequence[Subspace],
    variations: Sequence[Variation],
    shots: int,
    episodes: int,
    score_episodes: int,
    suite: str | Suite | None = None,
) -> KShot:
    """Adapt every seed to every variation by the paper's grid. The variations are those of `suite`:
    by default the one the subspaces were trained on."""
    adapt, kind = imported("slackline.adapt.kshot").adapt_many, imported("slackline.suites.suite")
    _insist_on_several("subspaces", subspaces, Subspace)
    _insist_on_several("variations", variations, kind.Variation)
    return adapt(subspaces, variations, shots, episodes, score_episodes, _named(suite))


def _insist_on_several(what: str, given: Any, kind: type) -> None:
    several = isinstance(given, Sequence) and all(isinstance(each, kind) for each in given)
    if not several or not len(given):
        raise SlacklineError(f"{what} is {spelt(given)}; it must be a list of {kind.__name__}s")


def analyse(
    kind: str,
    runs: str | Path | Sequence[str | Path],
    *,
    variations: Sequence[str] = (),
    suite: str | Suite | None = None,
    env: Any = None,
    **options: Any,
) -> Finding:
    """Look at finished runs in one of the ways that `slackline analyse --help` names; `options` are
    that one's own.

    `variations` are names of the suite's, by default all; `suite` is another one than the runs were
    trained on, with the same observations and actions. `env` names environments of your own again,
    as for `load`. What is found has `tables`, `figures` and `numbers`; `save(folder)` keeps it.
    """
    catalogue = imported("slackline.analyses.catalogue")
    made = catalogue.with_options(catalogue.kind_named(kind), options)
    subjects = _subjects(runs, suite, env, plays=made.plays)
    return catalogue.examine(made, subjects, variations)


def sweep(
    runs: str | Path | Sequence[str | Path],
    change: str,
    start: float,
    stop: float,
    *,
    suite: str | Suite | None = None,
    env: Any = None,
    **options: Any,
) -> Finding:
    """The return against severity: `change`, a number of the environment, goes from `start` to
    `stop`. `options` are the fields of `slackline.analyses.sweep.Sweep`, the rest as for `analyse`.
    """
    catalogue = imported("slackline.analyses.catalogue")
    kind, given = imported("slackline.analyses.sweep").Sweep, {"start": start, "stop": stop}
    made = catalogue.with_options(kind, {"change": change, **given, **options})
    return catalogue.examine(made, _subjects(runs, suite, env), ())


def _subjects(
    runs: str | Path | Sequence[str | Path],
    suite: str | Suite | None,
    env: Any,
    *,
    plays: bool = True,
) -> list[Subject]:
    """The finished runs in some folders, on their own suite or another one, whose environments
    have to be named if it is played."""
    paths = [runs] if isinstance(runs, str | Path) else runs
    if not isinstance(paths, Sequence) or not all(isinstance(p, str | Path) for p in paths):
        raise SlacklineError(f"runs is {spelt(runs)}; it must be the folders of runs")
    folders = [imported("slackline.store.run").RunFolder(located(path)) for path in paths]
    for run in folders:
        run.insist_on_finished()
    again, other = imported("slackline.suites.resolve").named_again, _named(suite)
    given = [] if env is None else env if isinstance(env, list | tuple) else [env]

    def played(run: RunFolder) -> Suite:
        return again(run.suite(), given, run.path) if plays else run.suite()

    subject = imported("slackline.analyses.analysis").Subject
    return [subject(run, other or played(run)) for run in folders]


def _named(given: str | Suite | None) -> Suite | None:
    if given is None or isinstance(given, str):
        return given if given is None else suite(given)
    if not isinstance(given, imported("slackline.suites.suite").Suite):
        raise SlacklineError(f"suite is {spelt(given)}; it must be a suite or the name of one")
    return given


def load(path: str | Path, seed: int | None = None, *, env: Any = None) -> Line:
    """Load a trained subspace from a run folder or a subspace file, or one that comes with the
    package: `pretrained:cartpole` (`slackline list --pretrained` names them).

    Where the run has several seeds, `seed` picks one; left out, the first. Nothing that a file
    names is imported or made: to play the variations of a suite of your own, name its environment
    again in `env`, as for `train` (or all of them in a list, if variations have environments of
    their own). Policies and adapters need none.
    """
    path = located(path)
    file = path / SUBSPACE if path.is_dir() else path
    found = _one_seed(file, _subspaces(path, file), seed)
    return Line.of(found if env is None else _at_home(found, env, path))


def _subspaces(path: Path, file: Path) -> list[Subspace]:
    """Every seed there is, each with what the run keeps of its suite."""
    if not path.is_dir():
        return load_subspaces(file)
    if not file.exists() and not file.is_symlink():
        read_record(path)  # names what is wrong with a folder that is not a run
        raise SlacklineError(f"{path}: is not trained to the end yet; resume it first")
    found = load_subspaces(file)
    if not (path / RECORD).exists():
        return found
    record, suite = read_record(path), found[0].suite
    insist_on_own(file, suite, record["config"].get("suite"))
    if isinstance(seeds := record["config"].get("seeds"), list):
        insist_on_seeds(file, [each.seed for each in found], seeds)
    spec = spec_in(record, suite, path / RECORD)
    return [replace(each, spec=spec or each.spec, where=path) for each in found]


def _one_seed(file: Path, subspaces: Sequence[Subspace], seed: int | None) -> Subspace:
    for subspace in subspaces:
        if seed in (None, subspace.seed):
            return subspace
    has = ", ".join(str(each.seed) for each in subspaces)
    raise SlacklineError(f"{file}: has no seed {spelt(seed)} (it has: {has})")


def _at_home(subspace: Subspace, env: Any, path: Path) -> Subspace:
    """With the environments that the user names, so that its variations can be played."""
    from slackline.suites.recorded import home_of
    from slackline.suites.resolve import named_again

    given = env if isinstance(env, list | tuple) else [env]
    return replace(subspace, home=named_again(home_of(subspace), given, path))
