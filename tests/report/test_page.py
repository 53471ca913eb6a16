"""The page: every number, no network, nothing unescaped."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from fake_store import VARIATIONS, Store
from plotly.offline import get_plotlyjs

from slackline.drawing.sheet import COLOURS, NUM_COLOURS
from slackline.errors import SlacklineError
from slackline.methods.catalogue import CATALOGUE
from slackline.paper import CITATION, paper_average, paper_ratio, paper_score
from slackline.report.charts import colour_index
from slackline.report.figures import draw_figures
from slackline.report.markup import asset
from slackline.report.page import write_page
from slackline.report.plates import differing_preferences
from slackline.report.provenance import duration
from slackline.report.results import Results, Selection, load_results
from slackline.report.tables import benchmark_table, best_of
from slackline.report.words import headline, verdict


class Tables(HTMLParser):
    """Every table of a page as rows of cell texts."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.inside = True
        elif tag == "small" and self.inside:
            self.tables[-1][-1][-1] += "|"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.tables[-1][-1][-1] += data


def written(store: Store) -> str:
    """The page of a store, without the packed plotly.js."""
    out = write_page(load_results(store.path), store.path / "deep" / "er" / "report.html")
    assert not list(out.parent.glob("*.partial"))
    return without_plotly(out.read_text(encoding="utf-8"))


def without_plotly(text: str) -> str:
    found = re.search(r'<script type="application/gzip" id="plotly">(.*?)</script>', text, re.S)
    assert found
    assert gzip.decompress(base64.b64decode(found[1])).decode() == get_plotlyjs()
    return text.replace(found[1], "")


def tables(text: str) -> list[list[list[str]]]:
    parser = Tables()
    parser.feed(text)
    return parser.tables


def rows(text: str) -> dict[str, list[str]]:
    """The first table's rows by name."""
    return {row[0].split("|")[0]: row[1:] for row in tables(text)[0]}


def charts(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', text, re.S)
    assert found
    return json.loads(found[1])


def mean_std(values: np.ndarray) -> str:
    """Written apart from the code under test."""
    mean = sum(values) / len(values)
    variance = sum((v - mean) ** 2 for v in values) / (len(values) - 1)
    return f"{mean:.1f} ± {variance**0.5:.1f}"


def test_table_holds_every_score(pair: Store) -> None:
    found = rows(written(pair))
    for i, name in enumerate(("Train", *VARIATIONS)):
        for m, method in enumerate(("single", "lop")):
            per_seed = pair.fresh[method, 10].astype(float)[:, i].mean(axis=-1)
            assert found[name][2 * m] == mean_std(per_seed)
            paper = paper_score("cartpole", CATALOGUE[method], name, 10)
            assert found[name][2 * m + 1] == (f"{paper.mean:g} ± {paper.std:g}" if paper else "")


def test_table_holds_averages_and_iqm(pair: Store) -> None:
    found = rows(written(pair))
    for m, method in enumerate(("single", "lop")):
        scores = pair.fresh[method, 10].astype(float)[:, 1:].mean(axis=-1)
        assert found["Average"][2 * m] == mean_std(scores.mean(axis=1))
        theirs = paper_average("cartpole", CATALOGUE[method], 10)
        assert found["Average"][2 * m + 1] == f"{theirs:g}"
        middle = np.sort(scores, axis=None)  # 18 values: 4.5 cut at both ends
        iqm = (middle[5:13].sum() + 0.5 * (middle[4] + middle[13])) / 9
        cell = re.fullmatch(r"(\S+) \[(\S+), (\S+)\]", found["IQM"][2 * m])
        assert cell
        assert cell[1] == f"{iqm:.1f}"
        assert float(cell[2]) <= iqm <= float(cell[3])
    line, single = (pair.fresh[m, 10].astype(float)[:, 1:].mean() for m in ("lop", "single"))
    ratio, theirs = found["Ratio to Single"][2:]
    assert ratio.startswith(f"{line / single:.2f} [")
    assert theirs == f"{paper_ratio('cartpole', CATALOGUE['lop'], 10):.2f}"


def test_table_says_what_adapting_had_to_win_and_added(pair: Store) -> None:
    found = rows(written(pair))
    tried = pair.tried["lop", 10].astype(float).mean(axis=-1)
    default = np.array([[of_v[row[0].argmax()] for of_v in row[1:]] for row in tried])
    assert found["Default z"][2] == mean_std(default.mean(axis=1))
    assert found["Default z"][0] == found["Average"][0], "one policy alone is its own"
    assert re.fullmatch(r"\S+ ± \S+", found["Oracle (split halves)"][2])
    single = pair.fresh["single", 10].astype(float)
    assert found["Headroom"][0] == f"{single[:, 0].mean() / single[:, 1:].mean():.2f}"
    assert found["Headroom"][2] == "–"


def test_table_leaves_out_what_was_not_measured(store: Store) -> None:
    store.add("lop", select_episodes=1, variations=VARIATIONS)
    found = rows(written(store))
    assert not {"Default z", "Oracle (split halves)", "Headroom", "Train"} & set(found)


def test_table_names_the_changes_and_whose_numbers(pair: Store) -> None:
    text = written(pair)
    head, under, *body = tables(text)[0]
    assert head == ["Variation", "Single policy", "Line of policies"]
    assert under == ["measured", "paper’s"] * 2
    assert body[0][0] == "HeavyPole|pole mass = 1"
    assert 'scope="row"' in text
    assert 'scope="colgroup"' in text
    assert "3 seeds × 10,240 steps" in text
    assert "4 episodes each" in text
    assert "5 fresh episodes" in text


def test_best_is_emphasised_with_its_ties() -> None:
    assert best_of([1.04, 1.02, 0.9], 1) == {0, 1}
    assert best_of([float("nan"), 1.0], 1) == {1}
    assert best_of([1.0], 1) == set()


def test_headline_says_who_wins(pair: Store) -> None:
    (result,) = load_results(pair.path).suites
    line, single = (
        pair.fresh[m, 10].astype(float)[:, 1:].mean(axis=(1, 2)) for m in ("lop", "single")
    )
    assert headline(result, 10) == (
        f"Averaged over 6 changed CartPoles, the line of policies scores {line.mean():.1f}, "
        f"the single policy {single.mean():.1f}."
    )
    error = (line.var(ddof=1) / 3 + single.var(ddof=1) / 3) ** 0.5
    assert verdict(result, 10) == (
        f"It is ahead by {line.mean() - single.mean():.1f}, with a standard error of "
        f"{error:.1f}: more than 2 standard errors, so hardly chance."
    )


def test_headline_says_when_the_line_loses(store: Store) -> None:
    store.add("single", level=120.0)
    store.add("lop", level=60.0)
    (result,) = load_results(store.path).suites
    assert verdict(result, 10).startswith("It is behind by ")


def test_headline_admits_noise(store: Store) -> None:
    store.add("single", level=100.0)
    store.add("lop", level=100.0)
    (result,) = load_results(store.path).suites
    assert "within the noise" in verdict(result, 10)


def test_every_method_has_a_colour_of_its_own() -> None:
    style = asset("page.css")
    indices = [colour_index(method) for method in CATALOGUE.values()]
    assert len(set(indices)) == len(CATALOGUE)
    for index in indices:
        assert style.count(f"--c{index}: #") == 2, "light and dark"
        assert f".swatch.c{index} {{" in style
    assert len(set(COLOURS)) == NUM_COLOURS
    assert [f"--c{i}: #" in style for i in (NUM_COLOURS - 1, NUM_COLOURS)] == [True, False]


def test_page_refers_to_nothing_outside(pair: Store) -> None:
    text = written(pair)
    assert "default-src 'none'" in text
    assert not re.findall(r"https?:", text)
    assert not re.findall(r"@import|url\(|<link|<iframe|<img", text)
    assert all(href.startswith("#") for href in re.findall(r'(?:href|src)="([^"]*)', text))


def test_hostile_strings_are_escaped(store: Store) -> None:
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;\"'$title"
    store.add("lop", command=["slackline", hostile])
    text = written(store)
    assert "alert(1)</script>" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "&amp;amp;" in text
    assert "$title" in text


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;{{ 7*7 }}"


def test_hostile_names_are_escaped_everywhere(pair: Store, tmp_path: Path) -> None:
    """Of suites, their variations and run folders: in text, attributes and charts."""
    (result,) = load_results(pair.path).suites
    changed = [replace(v, description=HOSTILE) for v in result.suite.variations]
    suite = replace(
        result.suite, name=HOSTILE, title=HOSTILE, variations=tuple(changed), note=HOSTILE
    )
    renamed = tuple(
        replace(v, name=HOSTILE) if v.name == VARIATIONS[0] else v for v in suite.variations
    )
    scores = result.scores.with_columns(
        pl.col("variation").replace(VARIATIONS[0], HOSTILE), suite=pl.lit(HOSTILE)
    )
    runs = [replace(run, path=tmp_path / HOSTILE.replace("/", "∕")) for run in result.runs]
    hostile = replace(result, suite=replace(suite, variations=renamed), scores=scores, runs=runs)
    out = write_page(Results(pair.path, [hostile, result]), tmp_path / "page.html")
    text = without_plotly(out.read_text(encoding="utf-8"))
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "7*7" in text
    page = Elements()
    page.feed(text)
    assert page.names.count("script") == 3
    assert not any(name.startswith("on") for name in page.attributes)
    names = [name for figure in charts(text).values() for name in strings(figure)]
    assert any("alert" in name for name in names)
    assert not any(re.search("<(?!br>)", name) for name in names), "Plotly reads HTML"


class Elements(HTMLParser):
    """Every element and attribute of a page by name."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]


def strings(value: object) -> list[str]:
    """All texts within a figure."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


def test_hostile_provenance_is_escaped(store: Store) -> None:
    run = store.add("lop")
    values = run.read()
    values["provenance"] = {"versions": ["<b>"], "machine": {"<i>": 1}, "training_seconds": "<u>"}
    run.run_file.write_text(json.dumps(values))
    text = written(store)
    assert "<b>'" not in text
    assert "&lt;b&gt;" in text
    assert "&lt;i&gt;" in text


def test_provenance_is_shown(pair: Store) -> None:
    text = written(pair)
    facts = {row[0]: row[1:] for row in tables(text)[1]}
    assert facts["Run folder"] == ["cartpole-single", "cartpole-lop"]
    assert facts["Training time, all seeds"] == ["75 s", "75 s"]
    assert facts["Seeds"] == ["0, 1, 2"] * 2
    assert "beta 1.0" in facts["Options"][1]
    assert all("jax" in cell for cell in facts["Versions"])
    settings = {row[0]: row[1:] for row in tables(text)[2]}
    assert settings["policy lr"] == ["0.001"]
    assert settings["hidden"] == ["8 × 8"]
    assert "slackline bench cartpole" in text
    assert CITATION in text


def test_charts_show_choices_curves_and_counts(pair: Store) -> None:
    drawn = list(charts(written(pair)).values())
    assert len(drawn) == 1 + len(VARIATIONS) + 1 + 1
    bars, first, counts, training = drawn[0], drawn[1], drawn[-2], drawn[-1]
    assert bars["data"][0]["y"] == list(VARIATIONS)
    assert len(first["data"]) == 3 + 1 + 1 + 1  # seeds, their mean, the single policy, the choices
    chosen = pair.chosen["lop", 10][:, 1]
    np.testing.assert_allclose(first["data"][-1]["x"], chosen / 9, atol=1e-6)
    assert sum(sum(trace["y"]) for trace in counts["data"]) == 3 * len(VARIATIONS)
    mean = next(t for t in training["data"] if t.get("name") == "Line of policies")
    assert mean["x"][:2] == [1024, 1536], "at 512 steps no seed had ended an episode"
    assert None not in mean["y"]
    assert mean["y"][0] == pytest.approx(15.5)  # two of three had
    assert mean["y"][-1] == pytest.approx(106.0)


def test_several_shots_have_tabs_and_the_papers_is_open(store: Store) -> None:
    shots = tuple(range(1, 21))
    store.add("lop", seeds=2, shots=shots, variations=VARIATIONS[:2])
    text = written(store)
    assert text.count('role="tab"') == 20
    opened = re.findall(r'<button[^>]*aria-selected="true"[^>]*>([^<]*)', text)
    assert opened == ["K = 10"]
    assert [t[0][0] for t in tables(text)].count("Variation") == 20
    assert charts(text)


def test_several_adapting_methods_have_tabs(pair: Store) -> None:
    pair.add("cop", level=95.0)
    text = written(pair)
    assert re.findall(r'role="tab"[^>]*>([^<]*)', text) == [
        "Line of policies",
        "Convex set of policies",
    ]
    labels = [f["layout"]["xaxis"]["title"]["text"] for f in charts(text).values()]
    assert labels.count("z") == labels.count("candidate") == len(VARIATIONS) + 1


def test_single_seed_claims_no_spread(store: Store) -> None:
    store.add("single", seeds=1)
    store.add("lop", seeds=1)
    text = written(store)
    assert "One seed says nothing about chance" in text
    assert "1 seed × 10,240 steps" in text


def test_single_method_lists_its_average(store: Store) -> None:
    store.add("single", variations=VARIATIONS[:1])
    text = written(store)
    mean = store.fresh["single", 10].astype(float).mean()
    assert f"On one changed CartPole (HeavyPole): Single policy {mean:.1f}." in text
    assert "Return against" not in text


def test_only_train_measured(store: Store) -> None:
    store.add("lop", variations=("Train",))
    assert "No variation was measured for every method at K = 10." in written(store)


def test_no_finished_episode_while_training(store: Store) -> None:
    run = store.add("lop")
    run.progress_file.unlink()
    run.append_progress({"iteration": 1, "steps": 512, "return": [None, None, None]})
    assert "no curve to draw" in written(store)


def test_several_suites_are_linked(pair: Store, tmp_path: Path) -> None:
    (result,) = load_results(pair.path).suites
    other = replace(result, suite=replace(result.suite, name="other", title="Other <1>"))
    out = write_page(Results(pair.path, [result, other]), tmp_path / "page.html")
    text = without_plotly(out.read_text(encoding="utf-8"))
    assert 'href="#cartpole"' in text
    assert 'id="other"' in text
    assert "Other &lt;1&gt;" in text
    assert len(set(charts(text))) == 19, "and the ratios of the overview"


@pytest.mark.parametrize("line", ["[]", "{}", '{"steps": 1, "return": [1.0]}', "7", '{"steps'])
def test_corrupt_progress_is_refused(pair: Store, line: str) -> None:
    with open(pair.path / "cartpole-lop" / "progress.jsonl", "a", encoding="utf-8") as file:
        file.write(line + "\n")
    with pytest.raises(SlacklineError, match=r"progress\.jsonl: is corrupt"):
        written(pair)


@pytest.mark.parametrize("name", ["scores.parquet", "run.json"])
def test_corrupt_files_are_refused(pair: Store, name: str) -> None:
    (pair.path / "cartpole-lop" / name).write_bytes(b"\x00 not what it was")
    with pytest.raises(SlacklineError, match=name):
        written(pair)


def test_unwritable_page_is_refused(pair: Store, tmp_path: Path) -> None:
    results = load_results(pair.path)
    with pytest.raises(SlacklineError, match="is a folder"):
        write_page(results, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(SlacklineError, match="cannot be written"):
        write_page(results, tmp_path / "file" / "page.html")


def test_durations_in_words() -> None:
    spans = [duration(s) for s in (8.0, 600, 9000, None, True)]
    assert spans == ["8 s", "10 min", "2.5 h", "unknown", "unknown"]


def test_figures_are_pictures_of_the_promised_width(pair: Store, tmp_path: Path) -> None:
    files = draw_figures(load_results(pair.path), tmp_path / "figures")
    names = ["return-against-z", "chosen-z", "kshot", "training"]
    assert [file.name for file in files] == [f"cartpole-{name}.png" for name in names]
    for file in files:
        content = file.read_bytes()
        assert content.startswith(b"\x89PNG")
        assert int.from_bytes(content[16:20], "big") == 1600


def selection(*returns: float, error: float = 1.0) -> Selection:
    """What one seed found at z = 0 and z = 1."""
    errors = np.full((1, 2), error)
    chosen = np.array([np.argmax(returns)])
    return Selection([0], [[0.0, 1.0], [1.0, 0.0]], True, np.array([returns]), errors, chosen)


def test_picture_claims_a_preference_only_where_both_sides_lose() -> None:
    left, right = selection(100.0, 50.0), selection(50.0, 100.0)
    assert differing_preferences([left, right], seed=0)
    assert not differing_preferences([left, left], seed=0)
    assert not differing_preferences([left, selection(99.0, 100.0)], seed=0)
    noisy = selection(50.0, 100.0, error=30.0)
    assert not differing_preferences([left, noisy], seed=0)


@pytest.mark.parametrize("method", ["single", "lop", "cop"])
def test_figures_of_one_method_and_seed(store: Store, tmp_path: Path, method: str) -> None:
    store.add(method, seeds=1, shots=(12, 20), variations=VARIATIONS[:4])
    files = draw_figures(load_results(store.path), tmp_path)
    assert len(files) == (2 if method == "single" else 4)


def test_mazes_without_weights_are_reported_without_walks(store: Store, tmp_path: Path) -> None:
    store.add("lop", suite="maze2d")
    text = written(store)
    assert "Where the policies walk" in text
    words = "cannot be drawn: the run has no subspace.safetensors"
    assert f"{CATALOGUE['lop'].title} {words}" in text
    files = draw_figures(load_results(store.path), tmp_path)
    assert not [file.name for file in files if "walks" in file.name]
    assert files


@pytest.mark.parametrize("name", ["../up.toml", "/root.toml", "gym:A/B-v0?x=1"])
def test_figures_stay_in_their_folder(pair: Store, tmp_path: Path, name: str) -> None:
    """Whatever a run calls its suite."""
    (result,) = load_results(pair.path).suites
    renamed = replace(result, suite=replace(result.suite, name=name))
    files = draw_figures(Results(pair.path, [renamed]), tmp_path / "figures")
    assert {file.resolve().parent for file in files} == {(tmp_path / "figures").resolve()}


def test_figures_are_not_written_through_links(pair: Store, tmp_path: Path) -> None:
    """A stranger's run may bring some, where the figures would be."""
    precious, folder = tmp_path / "precious", tmp_path / "figures"
    precious.write_text("mine")
    for file in draw_figures(load_results(pair.path), folder):
        file.unlink()
        file.symlink_to(precious)
        with pytest.raises(SlacklineError, match=f"{file.name}: is a symbolic link"):
            draw_figures(load_results(pair.path), folder)
        file.unlink()
    assert precious.read_text() == "mine"


def test_figures_without_matplotlib_say_what_to_install(
    pair: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(SlacklineError, match=r"pip install 'slackline-rl\[figures\]'"):
        draw_figures(load_results(pair.path), tmp_path)


@pytest.mark.parametrize("some", [(), ("LongPole",)])
def test_the_papers_average_stands_beside_one_of_all_changes_only(
    store: Store, some: tuple[str, ...]
) -> None:
    store.add("lop", variations=some or None)
    (result,) = load_results(store.path).suites
    table = benchmark_table(result, 10)
    assert table.columns[-1].title == "paper’s"
    (average,) = (row.cells for row in table.sections[1] if row.cells[0] == "average")
    assert average[-1] == ("–" if some else "149.9")
    assert ("paper’s 149.9" in written(store)) == (not some)


@pytest.mark.parametrize(("seeds", "whole"), [(1, True), (30, False)])
def test_few_choices_are_counted_by_whole_ticks(store: Store, seeds: int, *, whole: bool) -> None:
    """One seed and one change have one choice: no axis of 0, 0, 0, 1, 1, 1."""
    store.add("lop", seeds=seeds, variations=VARIATIONS[: 1 if whole else None])
    axis = list(charts(written(store)).values())[-2]["layout"]["yaxis"]
    assert axis["title"]["text"] == "times chosen"
    assert axis.get("dtick") == (1 if whole else None)
