"""What to take along tomorrow, when to leave, and a note that says both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TypedDict

from fsm_agent import SkillContext, skill


@dataclass(frozen=True, slots=True)
class Thing:
    """Something to take along, and what for."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Appointment:
    """A meeting. `travel`: it is at a place, not online. `bring`: what is needed there."""

    summary: str
    start: datetime
    end: datetime
    all_day: bool
    place: str
    travel: bool
    bring: list[str]


@dataclass(frozen=True, slots=True)
class Departure:
    """When to leave, for which meeting, and how long the way is reckoned to take."""

    leave: datetime
    summary: str
    place: str
    minutes: int


@dataclass(frozen=True, slots=True)
class Weather:
    """What a forecast says: the chance of rain in percent, how much in mm, temperatures in °C, and the UV index."""

    city: str
    day: date
    sky: str
    rain_percent: int
    rain_mm: float
    low: int
    high: int
    uv_index: int


class Note(TypedDict):
    """The note's file, its size, and its text."""

    file: str
    bytes: int
    text: str


@skill(idempotent=True, max_retries=0, writes="bag")
def pack(things: list[str], why: str, context: SkillContext) -> list[Thing]:
    """Put things into the bag (the context's `bag`), and say what for."""
    packed = [Thing(name, why) for name in things]
    context.set("bag", packed)
    return packed


@skill(idempotent=True, max_retries=0, writes="bag")
def pack_for_meetings(meetings: list[Appointment], context: SkillContext) -> list[Thing]:
    """Put into the bag (the context's `bag`) what the meetings ask for."""
    packed = [Thing(name, meeting.summary) for meeting in meetings for name in meeting.bring]
    context.set("bag", packed)
    return packed


@skill(idempotent=True, max_retries=0)
def plan_departure(meetings: list[Appointment], travel_minutes: int, extra_minutes: int = 0) -> Departure:
    """When to leave for the first meeting that is at a place and at a time.

    Raises ValueError if there is no such meeting, or a number of minutes is negative.
    """
    if travel_minutes < 0 or extra_minutes < 0:
        raise ValueError("travel_minutes and extra_minutes must be 0 or more")
    places = [meeting for meeting in meetings if meeting.travel and not meeting.all_day]
    if not places:
        raise ValueError("no meeting is at a place and at a time: there is nowhere to go")
    first = min(places, key=lambda meeting: meeting.start)
    minutes = travel_minutes + extra_minutes
    return Departure(first.start - timedelta(minutes=minutes), first.summary, first.place, minutes)


@skill(idempotent=True, retry_on=OSError)
def write_day_note(
    file: Path,
    weather: Weather | None,
    meetings: list[Appointment],
    not_read: list[str],
    bag: list[Thing],
    departure: Departure | None,
) -> Note:
    """Write a note for the day: weather, when to leave, what to take, the meetings, and what could not be read."""
    text = note_of(weather, meetings, not_read, bag, departure)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")
    return {"file": str(file), "bytes": file.stat().st_size, "text": text}


def note_of(
    weather: Weather | None,
    meetings: Sequence[Appointment],
    not_read: Sequence[str],
    bag: Sequence[Thing],
    departure: Departure | None,
) -> str:
    """The text of the note."""
    sky = (
        f"{weather.city}, {weather.day:%A} {weather.day}: {weather.sky}, {weather.low} to {weather.high} °C, "
        f"rain {weather.rain_percent} % ({weather.rain_mm:g} mm)."
        if weather
        else "There is no forecast."
    )
    leave = (
        f"Leave at {departure.leave:%H:%M} for {departure.summary} ({departure.place}): {departure.minutes} minutes."
        if departure
        else "There is nowhere to go."
    )
    blocks = ["# Tomorrow", sky, leave]
    blocks += _section("To take along", [f"[ ] {line}" for line in bag_lines(bag)])
    blocks += _section("Meetings", [_meeting_line(meeting) for meeting in meetings])
    blocks += _section("Not read: look into the calendar itself", not_read)
    return "\n\n".join(blocks) + "\n"


def bag_lines(bag: Iterable[Thing]) -> list[str]:
    """One line for each thing, with all that it is for; in order of name, for who packs first is a matter of chance."""
    reasons: dict[str, list[str]] = {}
    for thing in bag:
        reasons.setdefault(thing.name, []).append(thing.why)
    return [f"{name} ({'; '.join(sorted(set(whys)))})" for name, whys in sorted(reasons.items())]


def _meeting_line(meeting: Appointment) -> str:
    times = "all day" if meeting.all_day else f"{meeting.start:%H:%M} to {meeting.end:%H:%M}"
    return f"{times}: {meeting.summary}" + (f", {meeting.place}" if meeting.place else "")


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "\n".join(f"- {line}" for line in lines)] if lines else []
