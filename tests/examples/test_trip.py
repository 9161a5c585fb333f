"""A business trip: what is found, what is booked, and the plan with many inputs."""

from __future__ import annotations

import csv
from datetime import date, time, timedelta

import pytest
from example_plans import DATA, engine, files_of, plan_file, problems_of, statuses

from skills import ledger, travel
from skills.travel import Connection, Hotel, NothingFound

TRIP = DATA / "trip"
DAY = date(2026, 12, 7)


# Finding ------------------------------------------------------------------------------------------------------------


def connection(number, *, means="train", day=DAY, way=("A", "B"), at=(8, 10), price=100, seats=1):
    return Connection(day, means, number, "rail", *way, time(at[0]), time(at[1]), price, seats)


BACK = ("B", "A")
NEXT = DAY + timedelta(days=1)


@pytest.mark.parametrize(
    ("timetable", "number"),
    [
        ([connection("dear", price=101), connection("cheap")], "cheap"),
        ([connection("late", at=(9, 11)), connection("early")], "early"),
        ([connection("full", price=1, seats=0), connection("free")], "free"),
        ([connection("other day", day=NEXT, price=1), connection("today")], "today"),
        ([connection("other way", way=BACK, price=1), connection("there")], "there"),
        ([connection("flight", means="flight", price=1), connection("train")], "train"),
    ],
)
def test_the_cheapest_connection_with_a_free_seat_is_found(timetable, number):
    assert travel.cheapest(timetable, "train", "A", "B", DAY).number == number


@pytest.mark.parametrize(
    ("timetable", "says"),
    [
        ([], "no train from A to B on 2026-12-07: the timetable has none"),
        (
            [connection("1", seats=0), connection("2", seats=0)],
            "no train from A to B on 2026-12-07: all 2 are sold out",
        ),
    ],
)
def test_a_journey_that_is_not_there_is_told(timetable, says):
    with pytest.raises(NothingFound, match=says):
        travel.cheapest(timetable, "train", "A", "B", DAY)


def test_a_journey_goes_there_and_some_nights_later_back():
    timetable = [connection("out"), connection("same day", way=BACK), connection("back", way=BACK, day=NEXT, price=40)]
    journey = travel.choose_journey(timetable, "train", "A", "B", DAY, 1)
    assert (journey.outward.number, journey.back.number, journey.cost) == ("out", "back", 140)


def test_a_day_trip_that_goes_back_before_it_arrives_is_refused():
    timetable = [connection("out", at=(8, 12)), connection("back", way=BACK, at=(12, 16))]
    with pytest.raises(NothingFound, match="stay a night"):
        travel.choose_journey(timetable, "train", "A", "B", DAY, 0)


def test_nights_cannot_be_negative():
    with pytest.raises(ValueError, match="nights must be 0 or more"):
        travel.choose_journey([], "train", "A", "B", DAY, -1)


def hotel(name, price=100, stars=3, full_on=""):
    return Hotel("B", name, stars, "centre", price, full_on)


@pytest.mark.parametrize(
    ("hotels", "name"),
    [
        ([hotel("dear", 101), hotel("cheap")], "cheap"),
        ([hotel("full on the first night", 1, full_on="2026-12-07"), hotel("free")], "free"),
        ([hotel("full on the last night", 1, full_on="2026-12-01 2026-12-08"), hotel("free")], "free"),
        ([hotel("full when one has left", 1, full_on="2026-12-09"), hotel("dear")], "full when one has left"),
        ([hotel("other class", 1, stars=2), hotel("this class")], "this class"),
    ],
)
def test_the_cheapest_hotel_with_a_room_on_every_night_is_found(hotels, name):
    stay = travel.choose_hotel(hotels, "B", 3, DAY, 2)
    assert (stay.hotel, stay.cost) == (name, 2 * next(each.price for each in hotels if each.name == name))


@pytest.mark.parametrize(
    ("hotels", "says"),
    [([], "the list has none"), ([hotel("full", full_on="2026-12-07")], "all 1 are full on one of the nights")],
)
def test_a_hotel_that_is_not_there_is_told(hotels, says):
    with pytest.raises(NothingFound, match=says):
        travel.choose_hotel(hotels, "B", 3, DAY, 1)


@pytest.mark.parametrize(
    ("means", "at", "says"),
    [
        ("flight", 8, "2026-12-07 06:00 at the airport in A"),
        ("train", 8, "2026-12-07 07:30 at the station in A"),
        ("flight", 1, "2026-12-06 23:00 at the airport in A"),
    ],
)
def test_one_is_told_when_to_be_there(means, at, says):
    assert travel.be_there(connection("1", means=means, at=(at, at + 2))) == says


# The ledger ---------------------------------------------------------------------------------------------------------


def test_a_booking_is_made_once_under_one_key(tmp_path):
    file = tmp_path / "out" / "ledger.csv"
    first = ledger.book(file, "k1", "run", "a trip, with a comma", 100)
    again = ledger.book(file, "k1", "run", "a trip, with a comma", 100)
    other = ledger.book(file, "k2", "run", "another", 50)
    assert [each.repeated for each in (first, again, other)] == [False, True, False]
    assert ledger.bookings(file) == {"k1": ("a trip, with a comma", 100), "k2": ("another", 50)}
    assert file.read_text(encoding="utf-8").count("\n") == 3


def test_another_booking_under_the_same_key_is_refused(tmp_path):
    ledger.book(tmp_path / "l.csv", "k1", "run", "a trip", 100)
    with pytest.raises(ledger.LedgerError, match="a key stands for one booking"):
        ledger.book(tmp_path / "l.csv", "k1", "run", "a trip", 101)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("key,run_id,what,amount\nk,r,w,5", "ends in the middle of a line"),
        ("key,run_id,what,amount\nk,r,5\n", "row 2: not a row of key, run_id, what, amount"),
        ("key,run_id,what,amount\nk,r,w,-5\n", "row 2"),
        ("something,else\n", "row 1"),
    ],
)
def test_nothing_is_added_to_a_damaged_ledger(tmp_path, text, says):
    file = tmp_path / "l.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ledger.LedgerError, match=says):
        ledger.book(file, "k2", "run", "a trip", 100)
    assert file.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("amount", [0, -1])
def test_a_booking_costs_something(tmp_path, amount):
    with pytest.raises(ValueError, match="greater than 0"):
        ledger.book(tmp_path / "l.csv", "k", "run", "a trip", amount)
    assert not (tmp_path / "l.csv").exists()


# The plan -----------------------------------------------------------------------------------------------------------


def read(name):
    with (TRIP / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fare(means, way, day):
    """The lowest price of a day, from the timetable itself."""
    wanted = (means, *way, day)
    return min(
        int(row["price"])
        for row in read("timetable.csv")
        if (row["means"], row["origin"], row["destination"], row["day"]) == wanted and int(row["seats"])
    )


def room(city, stars, nights):
    """The lowest price of some nights, from the list of hotels itself."""
    free = [row for row in read("hotels.csv") if (row["city"], row["stars"]) == (city, str(stars))]
    return min(int(row["price"]) for row in free if not set(row["full_on"].split()) & set(nights)) * len(nights)


def run_trip(run, approve=True, **inputs):
    if "from_" in inputs:
        inputs["from"] = inputs.pop("from_")
    asked = []

    def approver(request):
        asked.append(request)
        return approve

    return run("business_trip", {"folder": str(TRIP), **inputs}, approver=approver), asked


SHANGHAI, BEIJING = ("北京", "上海"), ("上海", "北京")
FIRST = {"read_timetable", "read_hotels", "find_flight", "find_hotel", "does_flight_fit", "does_it_fit"}
CASES = [
    # inputs, (means, way, day out, day back), (stars, nights), the tasks besides FIRST, and those that are no success
    ({}, ("flight", SHANGHAI, "2026-12-07", "2026-12-09"), (4, ["2026-12-07", "2026-12-08"]), set(), {}),
    (
        {"budget": 3000},
        ("train", SHANGHAI, "2026-12-07", "2026-12-09"),
        (4, ["2026-12-07", "2026-12-08"]),
        {"find_train"},
        {"does_flight_fit": "FAILED"},
    ),
    (
        {"budget": 2000},
        ("train", SHANGHAI, "2026-12-07", "2026-12-09"),
        (2, ["2026-12-07", "2026-12-08"]),
        {"find_train", "find_simple_hotel", "does_simple_fit"},
        {"does_flight_fit": "FAILED", "does_it_fit": "FAILED"},
    ),
    (
        {"date": "2026-12-10"},
        ("train", SHANGHAI, "2026-12-10", "2026-12-12"),
        (4, ["2026-12-10", "2026-12-11"]),
        {"find_train"},
        {"find_flight": "FAILED", "does_flight_fit": "condition"},
    ),
    (
        {"date": "2026-12-08"},
        ("flight", SHANGHAI, "2026-12-08", "2026-12-10"),
        (3, ["2026-12-08", "2026-12-09"]),
        {"find_other_hotel"},
        {"find_hotel": "FAILED"},
    ),
    (
        {"nights": 0},
        ("flight", SHANGHAI, "2026-12-07", "2026-12-07"),
        None,
        set(),
        {"find_hotel": "condition"},
    ),
    (
        {"from_": "上海", "to": "北京"},
        ("flight", BEIJING, "2026-12-07", "2026-12-09"),
        (4, ["2026-12-07", "2026-12-08"]),
        set(),
        {},
    ),
]


def test_the_plan_is_valid_and_has_no_warnings():
    assert problems_of("business_trip") == ()


@pytest.mark.parametrize(("inputs", "journey", "stay", "more", "others"), CASES)
def test_the_plan_books_the_best_that_the_budget_allows(run, tmp_path, inputs, journey, stay, more, others):
    result, asked = run_trip(run, **inputs)
    means, way, out, back = journey
    cost = fare(means, way, out) + fare(means, way[::-1], back) + (room(way[1], *stay) if stay else 0)
    assert cost <= inputs.get("budget", 4000)
    assert result.phase == "completed"
    not_found = {name for name, status in others.items() if status == "FAILED" and name.startswith("find")}
    assert result.outcome == ("handled_failures" if not_found else "clean")
    assert result.output == {"booked": True, "cost": cost, "file": "out/trip/trip.md"}
    expected = dict.fromkeys(FIRST | more | {"book", "write_checklist"}, "SUCCEEDED") | others
    assert statuses(result) == expected
    assert [(request.task, request.risk, request.parameters["amount"]) for request in asked] == [("book", "high", cost)]
    booked = ledger.bookings(tmp_path / "out/trip/ledger.csv")
    assert [amount for _, amount in booked.values()] == [cost]
    checklist = (tmp_path / "out/trip/trip.md").read_text(encoding="utf-8")
    assert f"booked for ¥{cost:,}" in checklist
    assert all(key in checklist for key in booked)


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"budget": 1500}, "the cheapest trip found costs ¥1,778, ¥278 more than the budget of ¥1,500"),
        ({"to": "广州"}, "a part of it was not found"),
        ({"date": "tomorrow"}, "a part of it was not found"),
        ({"nights": -1}, "a part of it was not found"),
    ],
)
def test_where_nothing_fits_nothing_is_booked_and_nobody_is_asked(run, tmp_path, inputs, says):
    result, asked = run_trip(run, **inputs)
    assert (result.phase, asked) == ("completed", [])
    assert result.output == {"booked": False, "cost": 0, "file": "out/trip/trip.md"}
    assert statuses(result)["explain_no_trip"] == "SUCCEEDED"
    assert says in (tmp_path / "out/trip/trip.md").read_text(encoding="utf-8")
    assert set(files_of(tmp_path)) == {"out/trip/trip.md"}


def test_the_price_that_no_budget_is_enough_for_is_that_of_the_tables():
    nights = ["2026-12-07", "2026-12-08"]
    there_and_back = fare("train", SHANGHAI, nights[0]) + fare("train", BEIJING, "2026-12-09")
    assert there_and_back + room("上海", 2, nights) == 1778


def test_a_booking_that_a_person_refuses_is_not_made(run, tmp_path):
    result, asked = run_trip(run, approve=False)
    assert len(asked) == 1
    assert (result.phase, result.outcome) == ("completed", "handled_failures")
    assert statuses(result)["book"] == "FAILED"
    assert result.output["booked"] is False
    assert "it was not agreed to" in (tmp_path / "out/trip/trip.md").read_text(encoding="utf-8")
    assert set(files_of(tmp_path)) == {"out/trip/trip.md"}


def test_without_anyone_to_ask_the_plan_pauses_before_it_spends_money(run, tmp_path):
    result = run("business_trip", {"folder": str(TRIP)})
    assert result.phase == "paused"
    assert [(each["task"], each["risk"]) for each in result.to_json()["waiting"]] == [("book", "high")]
    assert files_of(tmp_path) == {}


def test_the_same_run_done_again_books_once(run, tmp_path):
    inputs = {"folder": str(TRIP)}
    first = run("business_trip", inputs, approver=lambda _: True, run_id="trip-7")
    again = run("business_trip", inputs, approver=lambda _: True, run_id="trip-7")
    booked = [result.to_json()["tasks"]["book"]["data"]["repeated"] for result in (first, again)]
    assert booked == [False, True]
    assert len(ledger.bookings(tmp_path / "out/trip/ledger.csv")) == 1


def test_another_run_is_another_booking(run, tmp_path):
    for number in (1, 2):
        run("business_trip", {"folder": str(TRIP)}, approver=lambda _: True, run_id=f"trip-{number}")
    assert len(ledger.bookings(tmp_path / "out/trip/ledger.csv")) == 2


def test_the_plan_writes_nothing_outside_of_its_folder(run, tmp_path):
    before = files_of(TRIP)
    run_trip(run, out="elsewhere")
    assert set(files_of(tmp_path)) == {"elsewhere/ledger.csv", "elsewhere/trip.md"}
    assert files_of(TRIP) == before


def test_the_comment_of_the_plan_names_the_price_of_its_default():
    text = plan_file("business_trip").read_text(encoding="utf-8")
    nights = ["2026-12-07", "2026-12-08"]
    cost = fare("flight", SHANGHAI, nights[0]) + fare("flight", BEIJING, "2026-12-09") + room("上海", 4, nights)
    assert f"a flight and a hotel of 4 stars, {cost} yuan" in text


def test_booking_is_of_high_risk_by_its_author_so_that_no_plan_can_lower_it():
    assert engine().skills.specs()["enter_booking"].risk == "high"
