"""slackline bench"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from slackline.cli.options import Count, Counts, Devices, MethodOptions, Numbers, Switch
from slackline.cli.parsing import parse_as
from slackline.cli.report import publish
from slackline.cli.train import naming, outcome
from slackline.errors import CellsFailed, SlacklineError, require_count, require_number
from slackline.progress import waiting
from slackline.runtime import set_up_jax
from slackline.shown import command
from slackline.suites import builtin
from slackline.suites.resolve import suite as find_suite
from slackline.suites.suite import Suite

if TYPE_CHECKING:
    from slackline.bench.board import Board
    from slackline.bench.cells import Cell
    from slackline.bench.costs import Cost
    from slackline.bench.engines.base import Engine, Event, Settings
    from slackline.bench.grid import Product
    from slackline.bench.home import Home

WORKER = "slackline.cli.worker"


@dataclass
class Bench:
    """Train and adapt several methods, print the table beside the paper's, write the page.

    Suites × methods × options × blocks of seeds make a grid of cells; each is a run folder below
    the output folder. Finished ones are skipped and interrupted ones go on, so the same command can
    be given again at any time.
    """

    suites: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="SUITE...")]
    """One or several suites (`slackline list` names them), suite files of your own (.toml), or one
    file with a whole grid: `paper.toml`, which comes with the package, is the paper's."""
    methods: tuple[str, ...] = ("single", "recommended")
    """The methods to compare (`slackline list` names them); recommended is vigour where actions are
    continuous and no pictures are seen, else senses."""
    seeds: int = 10
    """How many seeds of each."""
    first_seed: int = 0
    """The seeds are first_seed, first_seed + 1, …"""
    seeds_per_cell: Annotated[Count, tyro.conf.arg(metavar="INT")] = None
    """How many seeds make a cell, which is one compiled program. Default: all of them."""
    steps: Count = None
    """Environment steps per seed (8e6 and 8M will do)."""
    betas: Numbers = ()
    """Several weights of the auxiliary term, each a cell of its own, for the methods that have
    one."""
    shots: Counts = ()
    """K: how many values of z adaptation tries. Several are tried one after the other."""
    episodes: Count = None
    """Episodes for each of them."""
    score_episodes: Count = None
    """Fresh episodes for the final score."""
    preset: str = "paper"
    """Which hyper-parameters to use; `slackline list` names the presets of each suite."""
    methods_options: Annotated[
        tyro.conf.OmitArgPrefixes[MethodOptions], tyro.conf.arg(name="method")
    ] = field(default_factory=MethodOptions)
    scale: float = 1.0
    """Multiply all steps and episodes by this: 0.01 for a quick trial of a whole grid."""
    out: str = "runs/bench"
    """Folder to keep the runs and the page in, or its URL (s3://…, as fsspec has them)."""
    engine: str = "local"
    """What runs the cells: local (processes of this machine), ray (a Ray cluster) or inline (this
    process, for debugging)."""
    address: str | None = None
    """--engine ray: HOST:PORT of the cluster's head, or auto. Default: this machine alone."""
    gpus: float = 0.0
    """--engine ray: GPUs that each cell needs."""
    workers: int = 1
    """Cells at a time, each on its share of the cores."""
    retries: int = 2
    """How often a cell that failed is tried again."""
    devices: Devices = None
    """CPU devices of each cell, to spread the seeds over, or the blocks of one. Default: its
    cores."""
    dry_run: Switch = False
    """Only print the command of every cell, and what it is expected to cost."""

    def run(self) -> None:
        from slackline.bench.cells import insist_on_room
        from slackline.bench.engines import engine
        from slackline.bench.home import home_at

        require_count("workers", self.workers, high=10_000)
        require_count("retries", self.retries, low=0, high=100)
        require_number("gpus", self.gpus, low=0.0)
        # The nodes of a cluster may have more cores than this machine.
        set_up_jax(self.devices if self.engine != "ray" else None)
        with home_at(self.out) as home:
            cells = self.cells(home.folder)
            insist_on_room(cells, home.folder)
            if self.dry_run:
                self.print_plan(cells, home)
                return
            chosen = engine(self.engine, self.settings(home))
            with home.writing():
                board = self.run_cells(cells, home, chosen)
                self.conclude(cells, home, board, chosen)

    # The grid

    def cells(self, out: Path) -> list[Cell]:
        """All cells of the grid, those that are finished among them."""
        from slackline.bench.grid import is_grid_file, merged, read_grid

        files = [word for word in self.suites if is_grid_file(word)]
        if not files:
            return merged(self.product().cells(resolved(find_suite), out))
        if len(self.suites) > 1:
            raise SlacklineError(f"{files[0]}: is a whole grid; name it alone")
        self.insist_on_file_alone(files[0])
        products = [self.scaled(product) for product in read_grid(files[0])]
        every = (cell for p in products for cell in p.cells(resolved(builtin), out))
        return merged(every)

    def product(self) -> Product:
        """The grid of the command's own options."""
        from slackline.bench.grid import Product
        from slackline.io.decode import check

        found = Product(
            suites=self.suites,
            methods=self.methods,
            seeds=self.seeds,
            first_seed=self.first_seed,
            seeds_per_cell=self.seeds_per_cell,
            steps=self.steps,
            preset=self.preset,
            betas=self.betas,
            options=self.methods_options.given(),
            shots=self.shots,
            episodes=self.episodes,
            score_episodes=self.score_episodes,
            scale=self.scale,
        )
        check(found)
        return found

    def scaled(self, product: Product) -> Product:
        from dataclasses import replace

        from slackline.io.decode import check

        found = replace(product, scale=product.scale * self.scale)
        check(found)
        return found

    def insist_on_file_alone(self, file: str) -> None:
        """A grid file says itself what is trained."""
        about_running = "suites scale out engine workers retries devices dry_run address gpus"
        usual = vars(Bench(suites=()))
        for name, value in vars(self).items():
            if name not in about_running.split() and value != usual[name]:
                flag = "--" + name.replace("_", "-")
                what = "a method's option" if name == "methods_options" else flag
                raise SlacklineError(f"{what} was given, and {file} says itself what is trained")

    # Before

    def print_plan(self, cells: Sequence[Cell], home: Home) -> None:
        """The commands that would make the cells by hand, with what they are expected to cost."""
        from slackline.bench.costs import spoken

        costs = costs_of(cells, home.folder)
        total, todo, unknown = 0.0, 0, 0
        for cell in cells:
            cost, finished = costs[cell.name], cell.is_finished()
            total += 0.0 if finished or cost is None else cost.seconds
            todo += not finished
            unknown += cost is None and not finished
            words = "finished" if finished else cost and f"about {spoken(cost.seconds)}"
            print(f"{self.command_of(cell)}  # {cell.name}: {words or 'cost unknown'}")
        at_once = f", {self.workers} at a time" if self.workers > 1 else ""
        rest = f" (without {unknown} whose speed was never measured)" if unknown else ""
        print(
            f"# {len(cells)} cells, {todo} to run{at_once}: about {spoken(total / self.workers)}"
            f"{rest}, from measured speeds"
        )

    def command_of(self, cell: Cell) -> str:
        """The commands that would make a cell by hand."""
        from slackline.methods.catalogue import method as find_method

        config, out = cell.config, str(cell.path)
        usual = find_method(config.method, **cell.suite.options.get(config.method, {})).options
        changed = {k: v for k, v in config.options.items() if v != usual[k]}
        train = {
            "--method": config.method,
            "--seeds": len(config.seeds),
            "--first-seed": config.seeds[0],
            "--steps": config.steps,
            "--preset": self.preset_of(cell),
        }
        options = [word for k, v in changed.items() for word in ("--option", f"{k}={v}")]
        lines = [["train", cell.word, *flags(train), *options, "--out", out]]
        for how in cell.adaptings:
            adapt = {
                "--shots": how.shots,
                "--episodes": how.episodes,
                "--score-episodes": how.score_episodes,
            }
            lines.append(["adapt", out, *flags(adapt), *naming(cell.suite)])
        return " && ".join(command(*words) for words in lines)

    def preset_of(self, cell: Cell) -> str:
        from slackline.bench.merged import nearest_preset

        return nearest_preset(cell.suite, cell.config)[0]

    # Running

    def settings(self, home: Home) -> Settings:
        from slackline.bench.engines.base import Settings
        from slackline.cli.worker import perform

        return Settings(
            out=home.out,
            logs=home.logs,
            worker=WORKER,
            perform=perform,
            workers=self.workers,
            devices=self.devices,
            retries=self.retries,
            address=self.address,
            gpus=self.gpus,
        )

    def run_cells(self, cells: Sequence[Cell], home: Home, engine: Engine) -> Board:
        """Run what is not finished yet, showing how it goes."""
        from slackline.bench.board import Board
        from slackline.bench.jobs import Job
        from slackline.cli.grid_view import grid_view

        todo = [cell for cell in cells if not cell.is_finished()]
        for cell in cells:
            if cell not in todo:
                cell.run.tidy()
                print(outcome(cell.run, home.called(cell.name)))
        expected = {n: cost and cost.seconds for n, cost in costs_of(todo, home.folder).items()}
        board = Board(expected, engine.at_once)
        in_place = engine.in_place and home.remote is None
        jobs = [Job.of(cell, home.out, in_place=in_place) for cell in todo]
        home.logs.mkdir(parents=True, exist_ok=True)
        try:
            view = grid_view(board, len(cells) - len(todo))
            with view as draw, closing(engine.run(jobs)) as events:
                for event in events:
                    board.tell(event)
                    self.note(event, home)
                    draw()
        finally:
            with suppress(OSError):  # there are logs in it
                home.logs.rmdir()
        return board

    def note(self, event: Event, home: Home) -> None:
        """One line about a cell that is done."""
        from slackline.bench.engines.base import Ended
        from slackline.store.run import RunFolder

        if isinstance(event, Ended) and event.problem is None:
            home.refresh(event.name)
            print(outcome(RunFolder(home.folder / event.name), home.called(event.name)))

    def conclude(self, cells: Sequence[Cell], home: Home, board: Board, engine: Engine) -> None:
        """Write the page of what is done, and say what failed."""
        if len(board.failed) < len(cells):
            self.write_page(home)
        if board.failed:
            logs = [f"{n}: {p} (log: {engine.log_of(n)})" for n, p in board.failed.items()]
            raise CellsFailed(
                f"{len(board.failed)} of {len(cells)} cells failed, each tried "
                f"{1 + self.retries} times: {'; '.join(logs)}"
            )

    def write_page(self, home: Home) -> None:
        try:
            with waiting("writing the page"):
                page = publish(home.folder, home.folder / "report.html")
        except SlacklineError as error:
            raise SlacklineError(f"the cells are done, but there is no page: {error}") from error
        print(f"page: {home.keep(page)}")


def costs_of(cells: Sequence[Cell], folder: Path) -> dict[str, Cost | None]:
    """What each cell is expected to take."""
    from slackline.bench.costs import expected, measured_in

    here = measured_in(folder)
    return {cell.name: expected(cell, here) for cell in cells}


def resolved(find: Callable[[str], Suite]) -> Callable[[str], Suite]:
    """Find suites, and see that what they need is installed before any time is spent."""

    def found(name: str) -> Suite:
        suite = find(name)
        if suite.env.in_jax:
            suite.env.default_params()
        return suite

    return found


def parse(argv: list[str]) -> Bench:
    return parse_as("bench", Bench, argv)


def flags(values: dict[str, Any]) -> list[str]:
    """The words of options and their values."""
    return [str(word) for pair in values.items() for word in pair]
