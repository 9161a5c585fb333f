"""Sales in East China fell: the arithmetic, the chart, the report, and the plan on its data."""

from __future__ import annotations

import calendar
import csv
import io
import json
import runpy
import shutil
import xml.etree.ElementTree as ET
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from example_plans import DATA, data_of, files_of, problems_of, statuses
from hypothesis import given
from hypothesis import strategies as st

from skills import files, sales_causes, sales_chart, sales_report, tables
from skills.sales_causes import Position, Return, Sale, SalesDataError, Stock

SALES = DATA / "sales"
TASKS = {
    "read_sales", "read_stock", "read_returns", "compare_months", "did_sales_fall", "find_causes",
    "find_return_reasons", "draw_chart", "write_causes_report", "write_manifest",
}  # fmt: skip


# Reading a table ----------------------------------------------------------------------------------------------------


def parse(text, columns, where=None):
    return tables.parse_rows(io.StringIO(text, newline=""), "t.csv", columns, where or {})


def test_a_table_is_read_with_the_types_that_are_asked_for():
    rows = parse('name,units,share\n"a, b",3,0.5\nc,-4,1e2\n', {"name": "text", "units": "whole", "share": "number"})
    assert rows == [{"name": "a, b", "units": 3, "share": 0.5}, {"name": "c", "units": -4, "share": 100.0}]


def test_only_the_rows_that_match_are_read():
    assert parse("r,n\nx,1\ny,2\nx,3\n", {"n": "whole"}, {"r": "x"}) == [{"n": 1}, {"n": 3}]


@pytest.mark.parametrize(
    ("text", "columns", "where", "says"),
    [
        ("", {"n": "whole"}, {}, "line 1: there is no column 'n'; it is empty"),
        ("a,b\n", {"n": "whole", "m": "text"}, {}, "line 1: there is no column 'n', 'm'; it has a, b"),
        ("n\n", {"n": "whole"}, {}, "it has no rows"),
        ("n\n1\n2.5\n", {"n": "whole"}, {}, "line 3, column 'n': '2.5' is not a whole number: correct the cell"),
        ("n\n1_000\n", {"n": "whole"}, {}, "line 2, column 'n': '1_000' is not a whole number"),
        ("n\nnan\n", {"n": "number"}, {}, "line 2, column 'n': 'nan' is not a number"),
        ("n,m\n1\n", {"m": "text"}, {}, "line 2: the row ends before column 'm'"),
        ("n,m\n1,2,3\n", {"m": "text"}, {}, "line 2: more cells than columns"),
        ("r,n\nx,1\ny,2\n", {"n": "whole"}, {"r": "z"}, "no row has 'z' as its r; there is x, y"),
        ("r,q,n\nx,b,1\ny,a,2\n", {"n": "whole"}, {"r": "x", "q": "a"}, "no row has all of what is asked for"),
        ('n\n"1\n', {"n": "whole"}, {}, "not a CSV table in UTF-8"),
    ],
)
def test_a_fault_of_a_table_is_told_with_its_place(text, columns, where, says):
    with pytest.raises(tables.TableError, match=r"^t\.csv") as error:
        parse(text, columns, where)
    assert says in str(error.value)


def test_a_table_that_is_missing_is_named(tmp_path):
    with pytest.raises(tables.TableError, match=r"there is no file .*absent\.csv"):
        tables.load_rows(tmp_path / "absent.csv", {"n": "whole"}, {})


def test_a_table_in_another_encoding_is_refused_and_a_byte_order_mark_is_not(tmp_path):
    file = tmp_path / "t.csv"
    file.write_bytes("n\n1\n".encode("utf-8-sig"))
    assert tables.load_rows(file, {"n": "whole"}, {}) == [{"n": 1}]
    file.write_bytes("名\n1\n".encode("gb18030"))
    with pytest.raises(tables.TableError, match="UTF-8"):
        tables.load_rows(file, {"n": "whole"}, {})


# The arithmetic -----------------------------------------------------------------------------------------------------


def position(units=100, price=10, refunds=0, days=30, days_out=0):
    return Position(units, price, refunds, days, days_out)


@pytest.mark.parametrize(
    ("before", "now", "parts"),
    [
        (position(), position(), {}),
        (position(), position(units=50, days_out=15), {"stock-outs": 500}),
        (position(), position(refunds=70), {"returns": 70}),
        (position(refunds=70), position(), {"returns": -70}),
        (position(), position(units=90), {"demand": 100}),
        (position(), position(price=8), {"price": 200}),
        (position(), position(units=0, days_out=30), {"stock-outs": 1000}),
        (position(units=0, days_out=30), position(), {"stock-outs": -1000}),
        (position(), position(units=0, price=0), {"demand": 1000}),
        (position(units=0, price=0), position(), {"demand": -1000}),
        (position(units=50, days_out=15), position(units=50, days_out=15), {}),
    ],
)
def test_each_thing_that_happens_shows_in_its_own_part_of_the_fall(before, now, parts):
    assert {kind: amount for kind, amount in sales_causes.split_fall(before, now).items() if amount} == parts


MONTHS = st.builds(
    position,
    units=st.integers(0, 5000),
    price=st.integers(1, 5000),
    refunds=st.integers(0, 10**6),
    days=st.just(31),
    days_out=st.integers(0, 31),
)


@given(MONTHS, MONTHS)
def test_the_parts_add_up_to_the_fall(before, now):
    net = [each.units * each.price - each.refunds for each in (before, now)]
    assert sum(sales_causes.split_fall(before, now).values()) == net[0] - net[1]


@pytest.mark.parametrize(("month", "before"), [("2026-09", "2026-08"), ("2026-01", "2025-12"), ("2026-12", "2026-11")])
def test_the_month_before_is_known(month, before):
    assert sales_causes.month_before(month) == before


@pytest.mark.parametrize(
    ("month", "says"),
    [
        ("Sep 2026", "'Sep 2026' is no month: write it as 2026-09"),
        ("2026-13", "is no month"),
        ("2026-03", "must have 2026-02 and 2026-03; it has 2026-01 to 2026-03"),
        ("2026-01", "must have 2025-12 and 2026-01"),
        ("2026-04", "must have 2026-03 and 2026-04"),
    ],
)
def test_a_month_without_a_month_before_it_is_refused(month, says):
    sales = [Sale("2026-01", "kettle", 1, 1), Sale("2026-03", "kettle", 1, 1)]
    with pytest.raises(SalesDataError) as error:
        sales_causes.compare(sales, [], month)
    assert says in str(error.value)


SOLD = [Sale("2026-01", "kettle", 10, 5), Sale("2026-02", "kettle", 8, 5), Sale("2026-03", "kettle", 99, 5)]


def test_later_months_do_not_count():
    found = sales_causes.compare(SOLD, [Return("2026-02", "kettle", "broken", 1, 5)], "2026-02")
    assert (found.before, found.now, found.fall, found.fall_share) == (50, 35, 15, 0.3)
    assert (found.months, found.totals) == (["2026-01", "2026-02"], [50, 35])
    assert found.products == [sales_causes.Line("kettle", [50, 35])]


@pytest.mark.parametrize(
    ("stock", "says"),
    [
        ([], "the stock of 'kettle' in 2026-02 is not known"),
        ([Stock("2026-02", "kettle", 29, 0)], "out of stock on 29 days of 2026-02"),
        ([Stock("2026-02", "kettle", 1, 0)] * 2, "the stock table has 'kettle' in 2026-02 twice"),
    ],
)
def test_a_stock_table_that_cannot_be_right_is_refused(stock, says):
    with pytest.raises(SalesDataError) as error:
        sales_causes.positions(SOLD, stock, [], "2026-02")
    assert says in str(error.value)


def test_reasons_are_those_whose_refunds_rose():
    returns = [
        Return("2026-01", "kettle", "broken", 1, 10),
        Return("2026-02", "kettle", "broken", 4, 40),
        Return("2026-01", "kettle", "ugly", 3, 30),
        Return("2026-02", "kettle", "ugly", 2, 20),
        Return("2026-02", "fan", "loud", 1, 10),
        Return("2025-12", "fan", "old", 9, 90),
    ]
    found = sales_causes.find_return_reasons(returns, "2026-02", "2026-01")
    assert [(each.reason, each.units, each.before, each.now, each.rise, each.share) for each in found] == [
        ("broken", 4, 10, 40, 30, 0.75),
        ("loud", 1, 0, 10, 10, 0.25),
    ]


# Chart and report ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "low", "high", "step"),
    [
        ([0], 0, 1, 1),
        ([3, 7], 0, 8, 2),
        ([801_000, 230_000], 0, 1_000_000, 200_000),
        ([-150, 420], -200, 600, 200),
        ([-5, -1], -5, 0, 1),
    ],
)
def test_the_axis_goes_in_round_steps_from_and_to_round_numbers(values, low, high, step):
    scale = sales_chart.scale_of(values, 12)
    assert (scale.low, scale.high, scale.step) == (low, high, step)
    assert 0 in scale.ticks


@given(st.lists(st.floats(sales_chart.TOP, sales_chart.BOTTOM), min_size=1, max_size=12))
def test_names_of_lines_never_cover_each_other(heights):
    placed = sorted(sales_chart.spread_labels(heights))
    gaps = [below - above for above, below in pairwise(placed)]
    assert all(gap >= sales_chart.LABEL_GAP - 1e-6 for gap in gaps)
    assert placed[-1] <= sales_chart.BOTTOM + 1e-6


def test_a_chart_is_well_formed_and_has_a_point_for_each_value():
    lines = [sales_chart.ChartLine("A & <B>", [1, 2, 3]), sales_chart.ChartLine("C", [3, 0, -1])]
    root = ET.fromstring(sales_chart.chart_of("x < y", "z", ["2025-12", "2026-01", "2026-02"], lines))
    name = "{http://www.w3.org/2000/svg}"
    assert [len(line.get("points", "").split()) for line in root.iter(f"{name}polyline")] == [3, 3]
    texts = [text.text for text in root.iter(f"{name}text")]
    assert {"x < y", "z", "A & <B>", "C", "Dec", "Jan", "Feb", "2025", "2026"} <= set(texts)


@pytest.mark.parametrize(
    ("months", "lines", "says"),
    [([], [sales_chart.ChartLine("a", [])], "nothing to draw"), (["2026-01"], [], "nothing to draw"),
     (["2026-01"], [sales_chart.ChartLine("a", [1, 2])], "'a' has 2 values for 1 months")],
)  # fmt: skip
def test_a_chart_without_data_is_refused(months, lines, says):
    with pytest.raises(ValueError, match=says):
        sales_chart.chart_of("t", "s", months, lines)


def test_a_bar_in_a_name_does_not_break_the_table(tmp_path):
    change = sales_report.Change("2026-02", "2026-01", 100, 50, 50, 0.5)
    part = sales_report.FallPart("demand", "a|b", 50, 1.0, "x")
    parts = sales_report.FallParts(50, {"demand": 50}, [part])
    text = sales_report.causes_report(tmp_path / "r.md", "Moon", change, parts, [], None)
    assert "| 1 | demand | a\\|b | ¥50 | 100.0% | x |" in text


def test_a_manifest_lists_the_files_but_not_itself(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    entry = files.entry_of(tmp_path / "a")
    assert entry == {
        "name": "a",
        "bytes": 3,
        "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    }


# The plan -----------------------------------------------------------------------------------------------------------


def table(name, region):
    with (SALES / name).open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["region"] == region]


def expected(region, before, now):
    """The fall and its parts, from the tables, in another way than the skill's: month by month, product by product."""
    price, units, refunds, lost = (defaultdict(int) for _ in range(4))
    for row in table("sales.csv", region):
        units[row["product"], row["month"]] = int(row["units"])
        price[row["product"], row["month"]] = int(row["price"])
    for row in table("returns.csv", region):
        refunds[row["product"], row["month"]] += int(row["refund"])
    for row in table("stock.csv", region):
        key, out = (row["product"], row["month"]), int(row["days_out"])
        days = calendar.monthrange(int(row["month"][:4]), int(row["month"][5:]))[1]
        lost[key] = round(units[key] * out / (days - out))
    products = sorted({product for product, _ in units})
    net = {m: sum(units[p, m] * price[p, m] - refunds[p, m] for p in products) for m in (before, now)}
    stock_outs = sum(lost[p, now] * price[p, now] - lost[p, before] * price[p, before] for p in products)
    return {
        "fall": net[before] - net[now],
        "stock-outs": stock_outs,
        "returns": sum(refunds[p, now] - refunds[p, before] for p in products),
    }


def test_the_plan_is_valid_and_has_no_warnings():
    assert problems_of("sales_east_china") == ()


def test_the_plan_finds_that_stock_outs_and_returns_explain_the_fall(run, tmp_path):
    result = run("sales_east_china", {"folder": str(SALES)})
    assert (result.phase, result.outcome, result.coverage) == ("completed", "clean", 1.0)
    assert statuses(result) == dict.fromkeys(TASKS, "SUCCEEDED")
    causes = data_of(result, "find_causes")
    sums = expected("East China", "2026-08", "2026-09")
    assert causes["fall"] == sums["fall"] > 0
    assert causes["totals"]["stock-outs"] == sums["stock-outs"]
    assert causes["totals"]["returns"] == sums["returns"]
    assert sum(causes["totals"].values()) == sum(cause["amount"] for cause in causes["causes"]) == sums["fall"]
    assert [(cause["kind"], cause["product"]) for cause in causes["causes"][:2]] == [
        ("stock-outs", "Robot Vacuum R2"),
        ("returns", "Air Purifier A1"),
    ]
    assert sum(cause["share"] for cause in causes["causes"][:2]) > 0.9
    reasons = data_of(result, "find_return_reasons")
    assert (reasons[0]["product"], reasons[0]["reason"]) == ("Air Purifier A1", "filter seal leaks")
    text = (tmp_path / "out/sales/report.md").read_text(encoding="utf-8")
    assert f"¥{sums['fall']:,}" in text
    assert "filter seal leaks" in text
    assert "![Monthly net sales by product](sales.svg)" in text


def test_the_chart_of_the_plan_shows_every_product_over_twelve_months(run, tmp_path):
    run("sales_east_china", {"folder": str(SALES)})
    root = ET.parse(tmp_path / "out/sales/sales.svg").getroot()
    lines = [line.get("points", "").split() for line in root.iter("{http://www.w3.org/2000/svg}polyline")]
    assert [len(points) for points in lines] == [12] * 5


def test_the_plan_lists_what_it_wrote_and_writes_nothing_elsewhere(run, tmp_path):
    before = files_of(SALES)
    result = run("sales_east_china", {"folder": str(SALES)}, run_id="run-7")
    written = files_of(tmp_path)
    assert set(written) == {"out/sales/report.md", "out/sales/sales.svg", "out/sales/manifest.json"}
    assert files_of(SALES) == before
    manifest = json.loads((tmp_path / "out/sales/manifest.json").read_text(encoding="utf-8"))
    assert manifest["run_id"] == "run-7"
    assert {entry["name"]: entry["sha256"] for entry in manifest["files"]} == {
        name: written[f"out/sales/{name}"] for name in ("report.md", "sales.svg")
    }
    assert result.output["file"] == str(Path("out/sales/report.md"))


def test_the_plan_gives_the_same_files_every_time(run, tmp_path):
    run("sales_east_china", {"folder": str(SALES)}, run_id="a")
    first = files_of(tmp_path)
    run("sales_east_china", {"folder": str(SALES), "out": "again"}, run_id="a", max_parallel=1)
    again = files_of(tmp_path / "again")
    assert again["report.md"] == first["out/sales/report.md"]
    assert again["sales.svg"] == first["out/sales/sales.svg"]


def test_where_sales_did_not_fall_no_causes_are_looked_for(run, tmp_path):
    result = run("sales_east_china", {"folder": str(SALES), "region": "Southwest China"})
    assert expected("Southwest China", "2026-08", "2026-09")["fall"] < 0
    assert (result.phase, result.outcome) == ("completed", "clean")
    assert statuses(result) == dict.fromkeys(TASKS - {"find_causes", "find_return_reasons", "write_causes_report"},
                                             "SUCCEEDED") | {
        "did_sales_fall": "FAILED", "write_steady_report": "SUCCEEDED"
    }  # fmt: skip
    assert "did not fall" in (tmp_path / "out/sales/report.md").read_text(encoding="utf-8")


def test_where_returns_did_not_rise_no_reasons_are_looked_for(run, tmp_path):
    result = run("sales_east_china", {"folder": str(SALES), "month": "2026-07"})
    sums = expected("East China", "2026-06", "2026-07")
    assert sums["fall"] > 0
    assert sums["returns"] <= 0
    assert result.outcome == "clean"
    assert statuses(result)["find_return_reasons"] == "condition"
    assert "Why more was returned" not in (tmp_path / "out/sales/report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("missing", [["stock"], ["returns"], ["sales", "stock"], ["returns", "sales", "stock"]])
def test_tables_that_are_missing_are_named_in_a_report_instead(run, tmp_path, missing):
    shutil.copytree(SALES, tmp_path / "data")
    for name in missing:
        (tmp_path / "data" / f"{name}.csv").unlink()
    result = run("sales_east_china", {"folder": "data"})
    assert (result.phase, result.outcome) == ("completed", "handled_failures")
    found = statuses(result)
    assert {name for name, status in found.items() if status == "FAILED"} == {f"read_{name}" for name in missing}
    assert found["write_missing_data_report"] == "SUCCEEDED"
    assert not {"find_causes", "write_causes_report", "write_steady_report"} & found.keys()
    text = (tmp_path / "out/sales/report.md").read_text(encoding="utf-8")
    for name in ("sales", "stock", "returns"):
        assert (f"- **{name}**: there is no file" in text) == (name in missing)


def test_a_cell_that_is_no_number_is_named_in_the_report(run, tmp_path):
    shutil.copytree(SALES, tmp_path / "data")
    stock = tmp_path / "data" / "stock.csv"
    lines = stock.read_text(encoding="utf-8").splitlines()
    lines[1] = lines[1].rpartition(",")[0] + ",many"
    stock.write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = run("sales_east_china", {"folder": "data"})
    assert result.to_json()["tasks"]["read_stock"]["attempts"] == 1
    text = (tmp_path / "out/sales/report.md").read_text(encoding="utf-8")
    assert "stock.csv, line 2, column 'days_out': 'many' is not a whole number: correct the cell" in text


def test_a_month_that_cannot_be_compared_fails_the_run_but_the_list_of_files_is_written(run):
    result = run("sales_east_china", {"folder": str(SALES), "month": "2025-10"})
    assert (result.phase, result.reason["task"]) == ("failed", "compare_months")
    assert "must have 2025-09 and 2025-10" in result.reason["message"]
    assert statuses(result)["write_manifest"] == "SUCCEEDED"


def test_without_a_chart_the_report_is_written_all_the_same(run, tmp_path):
    (tmp_path / "out/sales/sales.svg").mkdir(parents=True)
    result = run("sales_east_china", {"folder": str(SALES)})
    assert (result.phase, result.outcome) == ("completed", "handled_failures")
    assert statuses(result)["draw_chart"] == "optional"
    assert "![" not in (tmp_path / "out/sales/report.md").read_text(encoding="utf-8")


def test_the_tables_are_those_that_their_generator_writes(tmp_path):
    copy = shutil.copy(SALES / "generate.py", tmp_path)
    runpy.run_path(copy, run_name="__main__")
    names = ("sales.csv", "stock.csv", "returns.csv")
    assert [files_of(tmp_path)[name] for name in names] == [files_of(SALES)[name] for name in names]
