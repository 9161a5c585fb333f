"""Meetings of a day from a calendar file (iCalendar, RFC 5545; a sane part of it).

Read are: folded lines; DTSTART with TZID, in UTC, floating, or a date; DTEND or DURATION; SUMMARY, LOCATION and
DESCRIPTION with escapes; RRULE with FREQ=DAILY or WEEKLY and COUNT, UNTIL, INTERVAL, BYDAY, WKST; EXDATE; meetings of
a series that were moved (RECURRENCE-ID); STATUS:CANCELLED. What needs more is named as not read, never left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fsm_agent import SkillContext, skill

DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_PROPERTY = re.compile(r'(?P<name>[A-Za-z0-9-]+)(?P<parameters>(?:;[A-Za-z0-9-]+=(?:"[^"]*"|[^":;]*))*):(?P<value>.*)')
_PARAMETER = re.compile(r';([A-Za-z0-9-]+)=("[^"]*"|[^":;]*)')
_TIME = r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)S)?)?"
_DURATION = re.compile(r"\+?P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?" + _TIME)


class CalendarError(ValueError):
    """The calendar cannot be read. The message says in which line, and what to do."""


class NotSupported(ValueError):
    """One meeting needs a part of RFC 5545 that is not read here."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """A meeting. `travel`: it is at a place, not online. `bring` is from a line `Bring: …` of its description."""

    summary: str
    start: datetime
    end: datetime
    all_day: bool
    place: str
    travel: bool
    bring: list[str]


@dataclass(frozen=True, slots=True)
class Agenda:
    """The meetings of a day in the order of time, and those of the calendar that could not be read, with why."""

    day: date
    meetings: list[Meeting]
    not_read: list[str]


@dataclass(frozen=True, slots=True)
class Line:
    """One property of a component: `name;parameters:value`, and the line of the file where it begins."""

    name: str
    parameters: Mapping[str, str]
    value: str
    number: int


@dataclass(slots=True)
class Component:
    """What stands between BEGIN and END."""

    name: str
    lines: dict[str, list[Line]] = field(default_factory=lambda: defaultdict(list))
    parts: list[Component] = field(default_factory=list)

    def first(self, name: str) -> Line | None:
        """The first property of this name."""
        return self.lines[name][0] if name in self.lines else None

    def text(self, name: str) -> str:
        """A text with its escapes undone; empty where it is missing."""
        line = self.first(name)
        return re.sub(r"\\(.)", lambda found: "\n" if found[1] in "nN" else found[1], line.value) if line else ""

    @property
    def title(self) -> str:
        """What an event is called."""
        return self.text("SUMMARY").strip() or "a meeting without a name"


@skill(idempotent=True, retry_on=OSError)
def read_meetings(file: Path, today: date, days_ahead: int, timezone: str, context: SkillContext) -> Agenda:
    """Read the meetings of the day that is `days_ahead` of today, in a time zone such as Asia/Shanghai.

    Raises CalendarError if the file is missing or damaged, or a time zone is not known.
    """
    if not file.is_file():
        raise CalendarError(f"there is no file {file} in {Path.cwd()}: give the path of a calendar (.ics)")
    calendar = Calendar(parse_calendar(file.read_text(encoding="utf-8-sig")), timezone)
    agenda = calendar.agenda(today + timedelta(days=days_ahead))
    context.log("calendar read", file=str(file), meetings=len(agenda.meetings), not_read=len(agenda.not_read))
    return agenda


def parse_calendar(text: str) -> Component:
    """The outermost component of a calendar."""
    stack = [top := Component("")]
    for number, content in unfold(text):
        line = _parse_line(content, number)
        if line.name == "BEGIN":
            stack.append(Component(line.value.upper()))
            stack[-2].parts.append(stack[-1])
        elif line.name == "END":
            if len(stack) == 1 or stack.pop().name != line.value.upper():
                raise CalendarError(f"line {number}: END:{line.value} ends nothing that was begun: correct the file")
        else:
            stack[-1].lines[line.name].append(line)
    if len(stack) > 1 or [part.name for part in top.parts] != ["VCALENDAR"]:
        raise CalendarError("this is not one whole VCALENDAR: export the calendar again")
    return top.parts[0]


def unfold(text: str) -> list[tuple[int, str]]:
    """The content lines with the numbers of their first lines: one that begins with a blank goes on from before."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        if found and line.startswith((" ", "\t")):
            found[-1] = (found[-1][0], found[-1][1] + line[1:])
        elif line:
            found.append((number, line))
    return found


def _parse_line(content: str, number: int) -> Line:
    found = _PROPERTY.fullmatch(content)
    if found is None:
        raise CalendarError(f"line {number}: not of the form NAME:value: correct the file")
    parameters = {name.upper(): value.strip('"') for name, value in _PARAMETER.findall(found["parameters"])}
    return Line(found["name"].upper(), parameters, found["value"], number)


@dataclass(frozen=True, slots=True)
class _Moment:
    """A point in local time; of a date it is the midnight at its beginning."""

    local: datetime
    zone: tzinfo
    is_date: bool

    @property
    def instant(self) -> datetime:
        return self.local.replace(tzinfo=self.zone).astimezone(UTC)


class Calendar:
    """A calendar as someone sees it who lives in one time zone."""

    def __init__(self, component: Component, zone_name: str) -> None:
        self.events = [part for part in component.parts if part.name == "VEVENT"]
        self.fixed = {name: zone for part in component.parts for name, zone in _fixed_zone(part)}
        self.home = self.zone(zone_name)

    def zone(self, name: str) -> tzinfo:
        """A zone as the file describes it where its offset never changes, else from the system's list."""
        try:
            return self.fixed.get(name) or ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise CalendarError(
                f"time zone {name!r} is not known: name it as Asia/Shanghai, or install tzdata"
            ) from error

    def agenda(self, day: date) -> Agenda:
        """What overlaps with a day."""
        begin = datetime.combine(day, time(), self.home)
        moved: dict[str, set[datetime]] = defaultdict(set)
        for event in self.events:
            moved[event.text("UID")] |= self.instants(event, "RECURRENCE-ID")
        meetings: list[Meeting] = []
        not_read: list[str] = []
        for event in (each for each in self.events if each.text("STATUS").upper() != "CANCELLED"):
            try:
                but = self.instants(event, "EXDATE")
                but |= set() if event.first("RECURRENCE-ID") else moved[event.text("UID")]
                meetings += self.meetings(event, begin, begin + timedelta(days=1), but)
            except NotSupported as error:
                not_read.append(f"{event.title}: {error}")
        return Agenda(day, sorted(meetings, key=lambda each: (not each.all_day, each.start, each.summary)), not_read)

    def meetings(self, event: Component, begin: datetime, end: datetime, but: set[datetime]) -> Iterator[Meeting]:
        """The occurrences of an event between two instants, but for those at some."""
        first = event.first("DTSTART")
        if first is None:
            raise CalendarError(f"{event.title}: it has no DTSTART: give it one")
        start = self.moment(first)
        length = self.length(event, start)
        for local in self.starts(event, start, end):
            moment = _Moment(local, start.zone, start.is_date)
            ends = _Moment(local + length, start.zone, True).instant if start.is_date else moment.instant + length
            is_then = begin <= moment.instant < end or moment.instant < begin < ends
            if is_then and moment.instant not in but:
                yield self.meeting(event, moment, ends)

    def meeting(self, event: Component, moment: _Moment, ends: datetime) -> Meeting:
        """One occurrence."""
        place = event.text("LOCATION").strip()
        online = "://" in place or place.lower() in {"", "online", "线上"}
        bring = ",".join(re.findall(r"^Bring:(.*)$", event.text("DESCRIPTION"), re.MULTILINE))
        things = [thing.strip() for thing in bring.split(",") if thing.strip()]
        times = (moment.instant.astimezone(self.home), ends.astimezone(self.home))
        return Meeting(event.title, *times, moment.is_date, place, not online, things)

    def starts(self, event: Component, start: _Moment, end: datetime) -> Iterator[datetime]:
        """The local times at which an event begins, up to an instant."""
        if event.first("RDATE"):
            raise NotSupported("dates of its own (RDATE) are not read")
        line = event.first("RRULE")
        if line is None:
            yield start.local
            return
        rule = _rule(line)
        last = min(end.astimezone(start.zone).replace(tzinfo=None), self.until(rule, line, start.zone))
        yield from islice(_series(start.local, rule, last), int(rule["COUNT"]) if "COUNT" in rule else None)

    def until(self, rule: Mapping[str, str], line: Line, zone: tzinfo) -> datetime:
        """The last local time at which something may begin: of a date, the end of that day."""
        if "UNTIL" not in rule:
            return datetime.max
        limit = self.moment(replace(line, name="UNTIL", value=rule["UNTIL"]))
        if limit.is_date:
            return datetime.combine(limit.local, time.max)
        return limit.local if limit.zone is self.home else limit.instant.astimezone(zone).replace(tzinfo=None)

    def length(self, event: Component, start: _Moment) -> timedelta:
        """How long an event lasts."""
        ends, lasts = event.first("DTEND"), event.first("DURATION")
        if ends is not None:
            moment = self.moment(ends)
            return moment.local - start.local if start.is_date else moment.instant - start.instant
        if lasts is None:
            return timedelta(days=1) if start.is_date else timedelta()
        found = _DURATION.fullmatch(lasts.value)
        if found is None or not any(found.groups()):
            raise CalendarError(f"line {lasts.number}: DURATION is of no form such as PT1H30M: correct it")
        return timedelta(**{unit: int(number or 0) for unit, number in found.groupdict().items()})

    def instants(self, event: Component, name: str) -> set[datetime]:
        """The instants that the properties of a name list."""
        values = [(line, value) for line in event.lines.get(name, []) for value in line.value.split(",")]
        return {self.moment(replace(line, value=value)).instant for line, value in values}

    def moment(self, line: Line) -> _Moment:
        """A date, a local time with a zone, a time in UTC, or a floating time, which is that of home."""
        zone = self.zone(line.parameters["TZID"]) if "TZID" in line.parameters else self.home
        text = line.value
        try:
            if "T" not in text:
                return _Moment(datetime.strptime(text, "%Y%m%d"), self.home, is_date=True)
            local = datetime.strptime(text.removesuffix("Z"), "%Y%m%dT%H%M%S")
        except ValueError as error:
            raise CalendarError(f"line {line.number}: {line.name} is no date or time: correct the file") from error
        return _Moment(local, UTC if text.endswith("Z") else zone, is_date=False)


def _rule(line: Line) -> dict[str, str]:
    rule = {name: value for name, _, value in (part.partition("=") for part in line.value.upper().split(";"))}
    if rule.get("FREQ") not in ("DAILY", "WEEKLY"):
        raise NotSupported(f"repeating {rule.get('FREQ', 'without FREQ')} is not read, only DAILY and WEEKLY")
    if others := rule.keys() - {"FREQ", "COUNT", "UNTIL", "INTERVAL", "BYDAY", "WKST"}:
        raise NotSupported(f"repeating with {', '.join(sorted(others))} is not read")
    if unknown := [day for day in f"{rule.get('BYDAY', 'MO')},{rule.get('WKST', 'MO')}".split(",") if day not in DAYS]:
        raise NotSupported(f"repeating on {', '.join(unknown)} is not read")
    for name in ("COUNT", "INTERVAL"):
        if not re.fullmatch(r"0*[1-9][0-9]{0,5}", rule.get(name, "1")):
            raise CalendarError(f"line {line.number}: {name} of RRULE is no whole number from 1 up: correct it")
    return rule


def _series(start: datetime, rule: Mapping[str, str], last: datetime) -> Iterator[datetime]:
    """All starts of a rule from the first up to `last`."""
    days = {DAYS.index(day) for day in rule["BYDAY"].split(",")} if "BYDAY" in rule else set(range(7))
    step, at, offsets = timedelta(days=int(rule.get("INTERVAL", "1"))), start, [0]
    if rule["FREQ"] == "WEEKLY":
        since_week_began = (start.weekday() - DAYS.index(rule.get("WKST", "MO"))) % 7
        step, at = step * 7, start - timedelta(days=since_week_began)
        offsets = [*range(7)] if "BYDAY" in rule else [since_week_began]
    while at <= last:
        for local in (at + timedelta(days=offset) for offset in offsets):
            if start <= local <= last and local.weekday() in days:
                yield local
        at += step


def _fixed_zone(part: Component) -> Iterator[tuple[str, tzinfo]]:
    """A VTIMEZONE that has one offset only, as most of the world's: it needs no list of zones."""
    offsets = {each.text("TZOFFSETTO") for each in part.parts}
    if part.name == "VTIMEZONE" and len(offsets) == 1:
        with suppress(ValueError):  # an offset of no known form: the system's list is asked
            yield part.text("TZID"), datetime.strptime(offsets.pop(), "%z").tzinfo or UTC
