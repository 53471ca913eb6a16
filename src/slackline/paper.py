"""The paper's own results, to be shown beside ours and always labelled as the paper's."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from slackline.methods.catalogue import CATALOGUE
from slackline.methods.method import Method

CITATION = (
    "Gaya, Soulier, Denoyer: Learning a Subspace of Policies for Online Adaptation in RL (2022)"
)


SAME_CHANGES = {"halfcheetah-soft": "halfcheetah"}
"""Suites with the names and factors of another: the paper's numbers of that one are theirs too."""


class PaperScore(NamedTuple):
    mean: float
    std: float

    def __str__(self) -> str:
        return f"{self.mean:g} ± {self.std:g}"


@cache
def _tables() -> dict[str, Any]:
    return json.loads(files("slackline").joinpath("data/paper.json").read_text(encoding="utf-8"))


def paper_score(suite: str, method: Method, variation: str, shots: int) -> PaperScore | None:
    """The paper's (mean, std) over its seeds, or None where it has no such cell.

    It is always of the run's own β: where the paper prints a method once for every β (Maze2d, Ant),
    the cell of `method`'s, elsewhere its cell if that is the β it used.
    """
    cells = _rows(suite, shots).get(variation, {})
    cell = cells.get(_at_beta(method)) or (_of_its_beta(suite, method) and cells.get(method.name))
    return PaperScore(cell["mean"], cell["std"]) if cell else None


def printed_betas(suite: str, method: str) -> list[float]:
    """The β's for which the paper prints a method on a suite, those of one column each."""
    rows = _tables().get(_printed(suite), {}).values()
    columns = {column for cells in rows for row in cells.values() for column in row}
    prefix = f"{method},beta="
    return sorted(float(c.removeprefix(prefix)) for c in columns if c.startswith(prefix))


def printed_shots(suite: str) -> list[int]:
    """The K's of the paper's tables of a suite."""
    return [int(name.removeprefix("K=")) for name in _tables().get(_printed(suite), {})]


def printed_methods(suite: str, shots: int) -> set[str]:
    """The names of the methods that the paper has on a suite at K."""
    columns = {column for cells in _rows(suite, shots).values() for column in cells}
    return {column.partition(",")[0] for column in columns}


def paper_train(suite: str, method: Method) -> float | None:
    """The paper's return on the training environment: of the Ant, by β."""
    beta = f"{method.options.get('beta', 1.0):g}"
    return _tables().get(f"{suite}_train_return", {}).get(method.name, {}).get(beta)


def _of_its_beta(suite: str, method: Method) -> bool:
    """Whether the β of the paper's only column is the method's; where it does not say, any is."""
    used = _tables()["beta"].get(_printed(suite), {}).get(method.name)
    return used is None or method.options.get("beta") == used


def paper_average(suite: str, method: Method, shots: int) -> float | None:
    """The paper's average over the suite's variations.

    Where it prints a method once for every β, the average of those cells: its summary quotes
    DIAYN+R on Maze2d at β = 0.1 without saying so.
    """
    summary = _tables().get(f"summary_K={shots}", {}).get(method.name, {}).get(_printed(suite))
    if summary is not None and not _printed_by_beta(suite, method, shots):
        return summary if _of_its_beta(suite, method) else None
    average = _average_of_cells(suite, method, shots)
    return None if average is None else round(average, 0 if abs(average) >= 1000 else 2)


def paper_summary(suite: str, method: str) -> float | None:
    """What the paper's first table prints (K = 10); of DIAYN+R and Lc that is some β of several."""
    return _tables()["summary_K=10"].get(method, {}).get(suite)


def paper_ratio(suite: str, method: Method, shots: int) -> float | None:
    """How many times as good as the single policy the paper's method is, on average.

    Of negative returns (costs) it is the single policy's ÷ the method's, as ours are. None where
    the paper has not all of the cells, and for the single policy itself.
    """
    single, other = (_average_of_cells(suite, m, shots) for m in (CATALOGUE["single"], method))
    if method.name == "single" or single is None or other is None or single * other <= 0.0:
        return None
    return other / single if single > 0.0 else single / other


def paper_accuracy(suite: str, method: Method, *, changed: bool) -> float | None:
    """How often the paper's classifier names one of five policies by a state, in [0, 1]."""
    rows = _tables().get(f"discriminator_accuracy_K=5_{suite}", {})
    return rows.get(method.name, {}).get("test" if changed else "train")


def _average_of_cells(suite: str, method: Method, shots: int) -> float | None:
    """Negative returns among positive ones count as zero: so the paper averages the Ant's."""
    scores = [paper_score(suite, method, name, shots) for name in _rows(suite, shots)]
    means = [score.mean for score in scores if score]
    if not means or len(means) < len(scores):
        return None
    return sum(max(mean, 0.0) if max(means) > 0.0 else mean for mean in means) / len(means)


def _at_beta(method: Method) -> str:
    """The name of the method's column where the paper has one for every β."""
    return f"{method.name},beta={method.options.get('beta', 1.0):g}"


def _printed_by_beta(suite: str, method: Method, shots: int) -> bool:
    columns = {column for cells in _rows(suite, shots).values() for column in cells}
    return any(column.startswith(f"{method.name},beta=") for column in columns)


def _printed(suite: str) -> str:
    """The suite under whose name the paper's numbers are kept."""
    return SAME_CHANGES.get(suite, suite)


def _rows(suite: str, shots: int) -> dict[str, dict[str, Any]]:
    """The table of a suite, {our name of a variation: {method: cell}}."""
    rows = _tables().get(_printed(suite), {}).get(f"K={shots}", {})
    return {_variation(row): cells for row, cells in rows.items()}


_RESPELT = {"BigThig": "BigThighs", "SmallShin": "SmallShins", "SmallThig": "SmallThighs"}
"""Rows of the paper's results that its own table of environments spells otherwise."""


def _variation(row: str) -> str:
    """Our name of a row: "LongPole CartPole" is LongPole, "Test Env #3" is Maze3,
    "Two Rooms Maze 1" is TwoRoomsMaze1 and "Levels 100 to 110" Levels100."""
    if row.startswith("Levels "):
        return "".join(row.split()[:2])
    if row.startswith("Test Env #"):
        return f"Maze{row[-1]}"
    if " Rooms " in row:
        return row.replace(" ", "")
    return row if row.endswith("%") else _RESPELT.get(row, row.split(" ")[0])
