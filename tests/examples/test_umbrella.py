"""An umbrella if it rains: the forecast, the calendar, the note, and the plan on several days."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import available_timezones

import pytest
from example_plans import DATA, data_of, files_of, problems_of, statuses
from hypothesis import given
from hypothesis import strategies as st

from skills import meetings, packing, weather
from skills.meetings import Calendar, CalendarError, parse_calendar

FORECASTS, CALENDAR = DATA / "umbrella" / "weather.json", DATA / "umbrella" / "meetings.ics"
needs_zones = pytest.mark.skipif("America/New_York" not in available_timezones(), reason="no list of time zones here")

SHANGHAI_ZONE = (
    "BEGIN:VTIMEZONE\nTZID:Asia/Shanghai\nBEGIN:STANDARD\nDTSTART:19910915T000000\nTZOFFSETFROM:+0800\n"
    "TZOFFSETTO:+0800\nEND:STANDARD\nEND:VTIMEZONE\n"
)


# The calendar -------------------------------------------------------------------------------------------------------


def calendar_of(*events, zone="Asia/Shanghai"):
    body = "".join(f"BEGIN:VEVENT\n{event}\nEND:VEVENT\n" for event in events)
    return Calendar(parse_calendar(f"BEGIN:VCALENDAR\n{SHANGHAI_ZONE}{body}END:VCALENDAR\n"), zone)


def on(day, *events, zone="Asia/Shanghai"):
    return calendar_of(*events, zone=zone).agenda(date.fromisoformat(day)).meetings


def days_of(event, first="2026-01-01", days=60):
    """The days of the month and year, as MM-DD, on which an event takes place."""
    calendar, begin = calendar_of(event), date.fromisoformat(first)
    dates = (begin + timedelta(days=number) for number in range(days))
    return [f"{day:%m-%d}" for day in dates if calendar.agenda(day).meetings]


@pytest.mark.parametrize(
    ("start", "begins"),
    [
        ("DTSTART;TZID=Asia/Shanghai:20260105T093000", "2026-01-05T09:30:00+08:00"),
        ('DTSTART;TZID="Asia/Shanghai":20260105T093000', "2026-01-05T09:30:00+08:00"),
        ("DTSTART:20260105T013000Z", "2026-01-05T09:30:00+08:00"),
        ("DTSTART:20260104T170000Z", "2026-01-05T01:00:00+08:00"),
        ("DTSTART:20260105T093000", "2026-01-05T09:30:00+08:00"),
        ("DTSTART;VALUE=DATE:20260105", "2026-01-05T00:00:00+08:00"),
        ("dtstart;tzid=Asia/Shanghai:20260105T093000", "2026-01-05T09:30:00+08:00"),
    ],
)
def test_a_start_is_read_in_each_of_its_forms(start, begins):
    assert [each.start.isoformat() for each in on("2026-01-05", start)] == [begins]


@needs_zones
def test_a_meeting_elsewhere_is_shown_in_the_time_of_home():
    found = on("2026-01-05", "DTSTART;TZID=America/New_York:20260104T193000\nDURATION:PT30M")
    assert [(each.start.hour, each.end.minute) for each in found] == [(8, 0)]


@needs_zones
def test_a_series_keeps_its_local_time_when_the_clocks_change():
    event = "DTSTART;TZID=America/New_York:20260302T090000\nRRULE:FREQ=WEEKLY"
    before, after = on("2026-03-02", event, zone="UTC"), on("2026-03-09", event, zone="UTC")
    assert [each.start.hour for each in (*before, *after)] == [14, 13]


@needs_zones
def test_a_whole_day_is_that_day_alone_when_the_clocks_change():
    event = "DTSTART;VALUE=DATE:20260308\nDTEND;VALUE=DATE:20260309"
    calendar = calendar_of(event, zone="America/New_York")
    found = [len(calendar.agenda(date(2026, 3, day)).meetings) for day in (7, 8, 9)]
    assert found == [0, 1, 0]


@pytest.mark.parametrize(
    ("length", "minutes"),
    [
        ("DTEND;TZID=Asia/Shanghai:20260105T101500", 75),
        ("DTEND:20260105T020000Z", 60),
        ("DURATION:PT1H30M", 90),
        ("DURATION:P1DT1M", 24 * 60 + 1),
        ("DURATION:P2W", 14 * 24 * 60),
        ("DURATION:+PT90S", 1.5),
        ("", 0),
    ],
)
def test_an_end_is_read_in_each_of_its_forms(length, minutes):
    (found,) = on("2026-01-05", f"DTSTART;TZID=Asia/Shanghai:20260105T090000\n{length}")
    assert (found.end - found.start) / timedelta(minutes=1) == minutes


@pytest.mark.parametrize(
    ("event", "days"),
    [
        ("DTSTART;VALUE=DATE:20260105", ["01-05"]),
        ("DTSTART;VALUE=DATE:20260105\nDTEND;VALUE=DATE:20260108", ["01-05", "01-06", "01-07"]),
        ("DTSTART:20260105T220000\nDURATION:PT4H", ["01-05", "01-06"]),
        ("DTSTART:20260105T220000\nDURATION:PT2H", ["01-05"]),
        ("DTSTART:20260106T000000", ["01-06"]),
    ],
)
def test_a_meeting_is_on_every_day_that_it_touches(event, days):
    assert days_of(event) == days


MONDAY = "DTSTART;TZID=Asia/Shanghai:20260105T090000\n"


@pytest.mark.parametrize(
    ("rule", "days"),
    [
        ("FREQ=DAILY;COUNT=3", ["01-05", "01-06", "01-07"]),
        ("FREQ=DAILY;INTERVAL=10;UNTIL=20260125", ["01-05", "01-15", "01-25"]),
        ("FREQ=DAILY;UNTIL=20260107T010000Z", ["01-05", "01-06", "01-07"]),
        ("FREQ=DAILY;UNTIL=20260107T005959Z", ["01-05", "01-06"]),
        ("FREQ=DAILY;UNTIL=20260107T090000", ["01-05", "01-06", "01-07"]),
        ("FREQ=DAILY;BYDAY=SA,SU;COUNT=3", ["01-10", "01-11", "01-17"]),
        ("FREQ=WEEKLY;COUNT=3", ["01-05", "01-12", "01-19"]),
        ("FREQ=WEEKLY;BYDAY=MO,WE,FR;COUNT=4", ["01-05", "01-07", "01-09", "01-12"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,TU;COUNT=3;WKST=MO", ["01-06", "01-11", "01-20"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,TU;COUNT=3;WKST=SU", ["01-06", "01-18", "01-20"]),
        ("freq=weekly;until=20260112t010000z", ["01-05", "01-12"]),
        ("FREQ=DAILY;INTERVAL=7;BYDAY=TU", []),
    ],
)
def test_a_rule_is_followed(rule, days):
    assert days_of(f"{MONDAY}RRULE:{rule}") == days


@given(
    start=st.dates(date(2026, 1, 1), date(2026, 1, 20)),
    weekly=st.booleans(),
    interval=st.integers(1, 4),
    count=st.integers(1, 9),
    names=st.sets(st.sampled_from(meetings.DAYS), min_size=1),
    first_day=st.sampled_from(meetings.DAYS),
)
def test_a_rule_gives_what_looking_at_every_day_gives(start, weekly, interval, count, names, first_day):
    shift = meetings.DAYS.index(first_day)

    def counts(day):
        weeks = ((day - start).days + (start.weekday() - shift) % 7) // 7
        distance = weeks if weekly else (day - start).days
        return distance % interval == 0 and meetings.DAYS[day.weekday()] in names

    days = [start + timedelta(days=number) for number in range(80)]
    expected = [f"{day:%m-%d}" for day in [day for day in days if counts(day)][:count] if day < date(2026, 3, 2)]
    rule = f"FREQ={'WEEKLY' if weekly else 'DAILY'};INTERVAL={interval};COUNT={count};WKST={first_day}"
    event = f"DTSTART:{start:%Y%m%d}T090000\nRRULE:{rule};BYDAY={','.join(sorted(names))}"
    assert days_of(event) == expected


@pytest.mark.parametrize(
    ("exception", "days"),
    [
        ("EXDATE;TZID=Asia/Shanghai:20260106T090000", ["01-05", "01-07"]),
        ("EXDATE:20260106T010000Z,20260107T010000Z", ["01-05"]),
        ("EXDATE:20260106T010000Z\nEXDATE:20260105T010000Z", ["01-07"]),
        ("EXDATE;TZID=Asia/Shanghai:20260106T100000", ["01-05", "01-06", "01-07"]),
    ],
)
def test_what_is_taken_out_of_a_series_does_not_take_place_and_counts(exception, days):
    assert days_of(f"{MONDAY}RRULE:FREQ=DAILY;COUNT=3\n{exception}") == days


def test_a_meeting_that_was_moved_takes_place_where_it_was_moved_to():
    series = f"UID:a\n{MONDAY}RRULE:FREQ=DAILY;COUNT=2\nSUMMARY:series"
    moved = "UID:a\nRECURRENCE-ID:20260106T010000Z\nDTSTART:20260108T010000Z\nSUMMARY:moved"
    other = f"UID:b\n{MONDAY}RRULE:FREQ=DAILY;COUNT=2\nSUMMARY:other"
    calendar = calendar_of(series, moved, other)
    found = [[each.summary for each in calendar.agenda(date(2026, 1, day)).meetings] for day in (5, 6, 7, 8)]
    assert found == [["other", "series"], ["other"], [], ["moved"]]


def test_a_cancelled_meeting_does_not_take_place_be_it_one_of_a_series():
    series = f"UID:a\n{MONDAY}RRULE:FREQ=DAILY;COUNT=2"
    cancelled = "UID:a\nRECURRENCE-ID:20260106T010000Z\nDTSTART:20260106T010000Z\nSTATUS:CANCELLED"
    calendar = calendar_of(series, cancelled, f"{MONDAY}STATUS:CANCELLED")
    assert [len(calendar.agenda(date(2026, 1, day)).meetings) for day in (5, 6)] == [1, 0]


def test_texts_are_unfolded_and_their_escapes_undone():
    (found,) = on(
        "2026-01-05",
        f"{MONDAY}SUMMARY:A long na\n me\\; with \\\\ and\\, too\nLOCATION;LANGUAGE=zh:南京\n\t西路\n"
        "DESCRIPTION:first\\nBring: a pen\\, paper\\Nlast",
    )
    assert (found.summary, found.place, found.bring) == (
        "A long name; with \\ and, too",
        "南京西路",
        ["a pen", "paper"],
    )


def test_what_an_alarm_says_is_not_what_the_meeting_says():
    alarm = "BEGIN:VALARM\nDESCRIPTION:Bring: nothing\nDURATION:PT5M\nEND:VALARM"
    (found,) = on("2026-01-05", f"{MONDAY}{alarm}\nDURATION:PT1H")
    assert (found.bring, found.end - found.start) == ([], timedelta(hours=1))


@pytest.mark.parametrize(
    ("place", "travel"),
    [("LOCATION:Room 5", True), ("LOCATION:https://meet.example.com/x", False), ("LOCATION:Online", False),
     ("LOCATION:线上", False), ("LOCATION: ", False), ("", False)],
)  # fmt: skip
def test_one_travels_to_places_only(place, travel):
    (found,) = on("2026-01-05", f"{MONDAY}{place}")
    assert found.travel is travel


def test_whole_days_come_first_and_then_the_hours():
    found = on("2026-01-05", f"{MONDAY}SUMMARY:b", "DTSTART:20260105T080000\nSUMMARY:a", "DTSTART:20260105\nSUMMARY:z")
    assert [each.summary for each in found] == ["z", "a", "b"]


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("RRULE:FREQ=MONTHLY", "repeating MONTHLY is not read"),
        ("RRULE:FREQ=WEEKLY;BYDAY=1MO", "repeating on 1MO is not read"),
        ("RRULE:FREQ=DAILY;BYHOUR=9,17", "repeating with BYHOUR is not read"),
        ("RRULE:COUNT=2", "repeating without FREQ is not read"),
        ("RDATE:20260106T010000Z", "RDATE"),
    ],
)
def test_what_is_not_understood_is_named_and_does_not_hide_the_rest(rule, says):
    found = calendar_of(f"{MONDAY}{rule}\nSUMMARY:odd", f"{MONDAY}SUMMARY:plain").agenda(date(2026, 1, 5))
    assert [each.summary for each in found.meetings] == ["plain"]
    assert len(found.not_read) == 1
    assert found.not_read[0].startswith("odd: ")
    assert says in found.not_read[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not one whole VCALENDAR"),
        ("BEGIN:VCALENDAR\nVERSION:2.0\n", "not one whole VCALENDAR"),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR\n", "line 3: END:VCALENDAR ends nothing that was begun"),
        ("END:VCALENDAR\n", "line 1: END:VCALENDAR ends nothing"),
        ("BEGIN:VCALENDAR\nhello\nEND:VCALENDAR\n", "line 2: not of the form NAME:value"),
        ("<html></html>", "line 1: not of the form"),
    ],
)
def test_a_file_that_is_no_calendar_is_refused(text, says):
    with pytest.raises(CalendarError, match=re.escape(says)):
        parse_calendar(text)


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ("SUMMARY:lost", "lost: it has no DTSTART"),
        ("DTSTART:tomorrow", "line 11: DTSTART is no date or time"),
        ("DTSTART:20260230", "line 11: DTSTART is no date or time"),
        ("DTSTART;TZID=Mars/Olympus:20260105T090000", "time zone 'Mars/Olympus' is not known"),
        ("DTSTART:20260105T090000\nDURATION:1 hour", "line 12: DURATION is of no form such as PT1H30M"),
        ("DTSTART:20260105T090000\nDURATION:P", "line 12: DURATION"),
        ("DTSTART:20260105T090000\nRRULE:FREQ=DAILY;COUNT=0", "line 12: COUNT of RRULE is no whole number from 1 up"),
        ("DTSTART:20260105T090000\nRRULE:FREQ=DAILY;INTERVAL=x", "line 12: INTERVAL of RRULE"),
        ("DTSTART:20260105T090000\nRRULE:FREQ=DAILY;UNTIL=soon", "line 12: UNTIL is no date or time"),
        ("DTSTART:20260105T090000\nEXDATE:20260105T090000,?", "line 12: EXDATE is no date or time"),
    ],
)
def test_a_damaged_meeting_is_told_with_its_line(event, says):
    with pytest.raises(CalendarError, match=re.escape(says)):
        on("2026-01-05", event)


def test_a_zone_with_one_offset_needs_no_list_of_zones():
    text = SHANGHAI_ZONE.replace("Asia/Shanghai", "Office").replace("TZOFFSETTO:+0800", "TZOFFSETTO:-0330")
    calendar = Calendar(parse_calendar(f"BEGIN:VCALENDAR\n{text}END:VCALENDAR"), "Office")
    assert calendar.home == timezone(-timedelta(hours=3, minutes=30))


# The forecast -------------------------------------------------------------------------------------------------------


DAY = {"sky": "rain", "rain_percent": 80, "rain_mm": 3, "low": 1, "high": 5, "uv_index": 0}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([], "w.json: there must be an object"),
        ({}, "w.json, cities: there must be an object"),
        ({"cities": {"A": {}}}, "w.json has no forecast for B; it has A"),
        ({"cities": {"B": {}}}, "w.json has no forecast for B on 2026-01-05; it has no day"),
        ({"cities": {"B": {"2026-01-06": DAY}}}, "w.json has no forecast for B on 2026-01-05; it has 2026-01-06 to"),
        ({"cities": {"B": {"2026-01-05": 5}}}, "w.json, B, 2026-01-05: there must be an object"),
        ({"cities": {"B": {"2026-01-05": DAY | {"low": "1"}}}}, "'low' is missing or of the wrong type"),
        ({"cities": {"B": {"2026-01-05": DAY | {"uv_index": True}}}}, "'uv_index' is missing or of the wrong type"),
    ],
)
def test_a_forecast_that_is_not_there_is_told(content, says):
    with pytest.raises(weather.ForecastError, match=re.escape(says)):
        weather.find_forecast(content, "w.json", "B", date(2026, 1, 5))


def test_a_forecast_is_read_from_a_file(tmp_path):
    file = tmp_path / "w.json"
    file.write_text(json.dumps({"cities": {"B": {"2026-01-05": DAY}}}), encoding="utf-8")
    found = weather.read_forecast(file, "B", date(2026, 1, 4), 1)
    assert found == weather.Forecast("B", date(2026, 1, 5), "rain", 80, 3, 1, 5, 0)
    file.write_text("rain", encoding="utf-8")
    with pytest.raises(weather.ForecastError, match="is not JSON"):
        weather.read_forecast(file, "B", date(2026, 1, 4), 1)


# Packing and leaving ------------------------------------------------------------------------------------------------


def appointment(hour, *, travel=True, all_day=False):
    start = datetime(2026, 1, 5, hour, tzinfo=UTC)
    return packing.Appointment(f"at {hour}", start, start, all_day, "Room", travel, [])


def test_one_leaves_for_the_first_meeting_that_is_at_a_place():
    found = packing.plan_departure(
        [appointment(12), appointment(9), appointment(7, travel=False), appointment(0, all_day=True)], 40, 15
    )
    assert (found.summary, found.minutes) == ("at 9", 55)
    assert found.leave == datetime(2026, 1, 5, 8, 5, tzinfo=UTC)


def test_leaving_for_a_meeting_just_after_midnight_is_the_day_before():
    assert packing.plan_departure([appointment(0)], 30).leave == datetime(2026, 1, 4, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize("minutes", [(-1, 0), (0, -1)])
def test_a_way_does_not_take_less_than_no_time(minutes):
    with pytest.raises(ValueError, match="0 or more"):
        packing.plan_departure([appointment(9)], *minutes)


def test_without_a_place_to_go_there_is_no_departure():
    with pytest.raises(ValueError, match="nowhere to go"):
        packing.plan_departure([appointment(9, travel=False)], 30)


def test_a_thing_for_two_purposes_is_taken_once_and_things_are_in_the_order_of_their_names():
    bag = [packing.Thing("pen", "a"), packing.Thing("laptop", "b"), packing.Thing("laptop", "a")]
    assert packing.bag_lines([*bag, bag[0]]) == ["laptop (a; b)", "pen (a)"]


# The plan -----------------------------------------------------------------------------------------------------------


def run_plan(run, **inputs):
    return run("umbrella", {"weather": str(FORECASTS), "calendar": str(CALENDAR), **inputs})


def forecast(city, day):
    return json.loads(FORECASTS.read_text(encoding="utf-8"))["cities"][city][day]


READ = {"read_forecast": "SUCCEEDED", "read_meetings": "SUCCEEDED", "write_note": "SUCCEEDED"}
RAIN = READ | {"will_it_rain": "SUCCEEDED", "pack_umbrella": "SUCCEEDED"}
DRY = READ | {"will_it_rain": "FAILED"}
SUN, NO_SUN = {"pack_for_the_sun": "SUCCEEDED"}, {"pack_for_the_sun": "condition"}
COAT, NO_COAT = {"pack_warm_clothes": "SUCCEEDED"}, {"pack_warm_clothes": "condition"}
GO = {"pack_for_meetings": "SUCCEEDED", "plan_departure": "SUCCEEDED"}
STAY = {"pack_for_meetings": "condition", "plan_departure": "condition"}
CASES = [
    ({}, RAIN | COAT | GO, "09:35", ["business cards", "coat", "laptop", "the signed offer", "umbrella"]),
    ({"today": "2026-11-18"}, DRY | NO_SUN | COAT | GO, "08:50", ["coat", "laptop"]),
    ({"today": "2026-11-18", "city": "广州"}, DRY | SUN | NO_COAT | GO, "08:50", ["laptop", "sun hat", "sunscreen"]),
    ({"today": "2026-11-18", "city": "北京"}, RAIN | COAT | GO, "08:35", ["coat", "gloves", "laptop", "umbrella"]),
    ({"today": "2026-11-19"}, RAIN | COAT | GO, "06:20", ["coat", "towel", "umbrella"]),
    ({"today": "2026-11-20"}, DRY | NO_SUN | COAT | STAY, None, ["coat"]),
    ({"rain_minutes": 0, "travel_minutes": 5}, RAIN | COAT | GO, "10:25", None),
]


def test_the_plan_is_valid_and_has_no_warnings():
    assert problems_of("umbrella") == ()


@pytest.mark.parametrize(("inputs", "tasks", "leave", "things"), CASES)
def test_the_plan_packs_by_the_forecast_and_the_calendar(run, tmp_path, inputs, tasks, leave, things):
    result = run_plan(run, **inputs)
    assert (result.phase, result.outcome) == ("completed", "clean")
    assert statuses(result) == tasks
    day = date.fromisoformat(inputs.get("today", "2026-11-17")) + timedelta(days=1)
    weather_of_day = forecast(inputs.get("city", "上海"), str(day))
    wet = weather_of_day["rain_percent"] >= 50 or weather_of_day["rain_mm"] >= 1
    note = (tmp_path / "out/umbrella/note.md").read_text(encoding="utf-8")
    assert result.output == note
    assert ("umbrella" in note) == wet
    assert weather_of_day["sky"] in note
    assert re.findall(r"Leave at (\d\d:\d\d)", note) == ([leave] if leave else [])
    if things is not None:
        assert re.findall(r"\[ \] ([^(]+) \(", note) == things
        assert sorted(thing["name"] for thing in result.context["bag"]) == things


def test_the_note_names_the_meetings_of_the_day_and_what_was_not_read(run):
    lines = run_plan(run).output.splitlines()
    begin = lines.index("## Meetings")
    assert [line for line in lines[begin:] if line.startswith("- ")] == [
        "- all day: Trade fair week",
        "- 09:00 to 09:15: Stand-up, https://meet.example.com/standup",
        "- 10:30 to 12:00: Workshop with Lin & Partners; second round, 静安区南京西路 1266 号, 21 楼",
        "- 14:30 to 15:30: Review with the office in Berlin, Online",
        "- Invoices: repeating MONTHLY is not read, only DAILY and WEEKLY",
    ]


@pytest.mark.parametrize(
    ("day", "names"),
    [
        ("2026-11-19", ["Trade fair week", "Report to the board (moved to the morning)"]),
        ("2026-11-20", ["Swimming"]),
        ("2026-12-03", ["Report to the board"]),
        ("2026-12-30", ["Stand-up"]),
        ("2027-01-01", []),
        ("2027-01-14", ["Report to the board"]),
        ("2027-01-28", []),
    ],
)
def test_the_series_of_the_calendar_are_right(day, names):
    text = CALENDAR.read_text(encoding="utf-8")
    found = Calendar(parse_calendar(text), "Asia/Shanghai").agenda(date.fromisoformat(day)).meetings
    assert [each.summary for each in found if each.summary != "Swimming" or names == ["Swimming"]] == names


def test_without_a_forecast_the_umbrella_is_taken_to_be_on_the_safe_side(run):
    result = run_plan(run, today="2026-12-01")
    assert (result.phase, result.outcome) == ("completed", "handled_failures")
    found = statuses(result)
    assert (found["read_forecast"], found["will_it_rain"]) == ("FAILED", "upstream_failed")
    assert found["pack_to_be_safe"] == "SUCCEEDED"
    assert "There is no forecast." in result.output
    assert "[ ] umbrella (there is no forecast)" in result.output


def test_without_a_calendar_the_note_says_so(run):
    result = run_plan(run, calendar="absent.ics")
    assert (result.phase, result.outcome) == ("completed", "handled_failures")
    assert result.to_json()["tasks"]["read_meetings"]["fallback_used"] is True
    assert "- The whole calendar could not be read." in result.output
    assert "[ ] umbrella" in result.output


def test_times_are_those_of_the_zone_that_is_asked_for(run):
    result = run_plan(run, timezone="UTC")
    starts = [meeting["start"] for meeting in data_of(result, "read_meetings")["meetings"]]
    assert "2026-11-18T06:30:00Z" in [start.replace("+00:00", "Z") for start in starts]
    assert "Leave at 01:35" in result.output


def test_the_plan_writes_nothing_but_its_note(run, tmp_path):
    before = files_of(DATA / "umbrella")
    run_plan(run)
    assert set(files_of(tmp_path)) == {"out/umbrella/note.md"}
    assert files_of(DATA / "umbrella") == before


def test_the_forecasts_cover_the_same_days_for_each_city():
    cities = json.loads(FORECASTS.read_text(encoding="utf-8"))["cities"]
    assert len({tuple(days) for days in cities.values()}) == 1
