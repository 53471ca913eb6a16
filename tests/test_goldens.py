"""The hashes of benchmarks/goldens.py; what it runs takes minutes and is not for CI."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from slackline.methods.catalogue import CATALOGUE

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import goldens  # type: ignore[import-not-found]

TENSORS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(2, np.int32)}


def test_the_hash_of_tensors_is_of_what_they_are_and_not_of_their_order() -> None:
    expected = goldens.tensors_hash(TENSORS)
    assert goldens.tensors_hash({name: TENSORS[name].copy() for name in "ba"}) == expected


@pytest.mark.parametrize(
    "changed",
    [
        {"a": TENSORS["a"], "c": TENSORS["b"]},
        {"a": TENSORS["a"].reshape(3, 2), "b": TENSORS["b"]},
        {"a": TENSORS["a"].view(np.int32), "b": TENSORS["b"]},
        {"a": np.nextafter(TENSORS["a"], np.float32(9)), "b": TENSORS["b"]},
        {"a": TENSORS["a"]},
    ],
    ids=["name", "shape", "dtype", "last bit", "missing"],
)
def test_the_hash_of_tensors_sees_a_change_of(changed: dict[str, np.ndarray]) -> None:
    assert goldens.tensors_hash(changed) != goldens.tensors_hash(TENSORS)


def test_the_hash_of_scores_is_of_the_rows_in_any_order_and_of_no_further_column() -> None:
    row = dict.fromkeys(goldens.SCORES, 1) | {"z": [0.1, 0.9]}
    table = pl.DataFrame([row | {"episode": i, "return": i / 3} for i in range(3)])
    expected = goldens.scores_hash(table)
    assert goldens.scores_hash(table.reverse().with_columns(adapter=pl.lit("grid"))) == expected
    nudged = table.with_columns(pl.col("return") + 1e-15)
    assert goldens.scores_hash(nudged) != expected


def test_a_comparison_knows_what_is_equal_different_missing_skipped_and_failed() -> None:
    recorded = {"same": "1", "other": "1", "gone": "1", "skip": "1", "fail": "1"}
    found = {"same": "1", "other": "2", "new": "1", "skip": "skipped: no", "fail": "failed: no"}
    assert goldens.verdicts(recorded, found) == {
        "same": "equal",
        "other": "different",
        "new": "missing",
        "skip": "skipped",
        "fail": "failed",
        "gone": "missing",
    }


def test_every_method_that_is_trained_has_an_entry() -> None:
    trained = {name for name, method in CATALOGUE.items() if method.is_trained}
    assert {*goldens.DISCRETE, *goldens.CONTINUOUS} == trained
