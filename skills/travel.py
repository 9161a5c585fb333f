"""A journey there and back and a hotel, found in tables that a plan has read; the cheapest that is free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Literal, TypedDict

from fsm_agent import SkillContext, skill

Means = Literal["flight", "train"]
EARLY: dict[str, timedelta] = {"flight": timedelta(minutes=120), "train": timedelta(minutes=30)}
"""How long before it leaves one should be there."""


class NothingFound(LookupError):
    """Nothing in the table is what was asked for. The message says what was looked at."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A flight or a train on one day. `price` is in yuan, for one person; `seats` is how many are free."""

    day: date
    means: Means
    number: str
    operator: str
    origin: str
    destination: str
    departs: time
    arrives: time
    price: int
    seats: int


@dataclass(frozen=True, slots=True)
class Journey:
    """There and back by one means; `cost` is in yuan."""

    means: Means
    outward: Connection
    back: Connection
    cost: int


@dataclass(frozen=True, slots=True)
class Hotel:
    """A hotel. `price` is in yuan a night; `full_on` lists the nights without a free room, divided by blanks."""

    city: str
    name: str
    stars: int
    district: str
    price: int
    full_on: str


@dataclass(frozen=True, slots=True)
class Stay:
    """Some nights in a hotel; `cost` is in yuan."""

    hotel: str
    stars: int
    district: str
    arrival: date
    nights: int
    cost: int


class Written(TypedDict):
    """The file that was written, its size, and what it says in one line."""

    file: str
    bytes: int
    summary: str


@skill(idempotent=True, max_retries=0, writes=("transport", "transport_cost"))
def find_journey(
    timetable: list[Connection],
    means: Means,
    origin: str,
    destination: str,
    leave: date,
    nights: int,
    context: SkillContext,
) -> Journey:
    """Find the cheapest connections there and back with a free seat, and put them into the context.

    Raises NothingFound if there is none in one of the two directions.
    """
    journey = choose_journey(timetable, means, origin, destination, leave, nights)
    context.set("transport", journey)
    context.set("transport_cost", journey.cost)
    return journey


@skill(idempotent=True, max_retries=0, writes=("hotel", "hotel_cost"))
def find_hotel(hotels: list[Hotel], city: str, stars: int, arrival: date, nights: int, context: SkillContext) -> Stay:
    """Find the cheapest hotel of a class with a free room on every night, and put it into the context.

    Raises NothingFound if there is none.
    """
    stay = choose_hotel(hotels, city, stars, arrival, nights)
    context.set("hotel", stay)
    context.set("hotel_cost", stay.cost)
    return stay


@skill(idempotent=True, retry_on=OSError)
def write_travel_checklist(file: Path, booking: str, amount: int, transport: Journey, hotel: Stay | None) -> Written:
    """Write what was booked, when to be where, and what to take along."""
    outward, back = transport.outward, transport.back
    summary = f"{outward.origin} → {outward.destination}, {outward.day} to {back.day}: booked for ¥{amount:,}."
    nights = [f"Check in at {hotel.hotel} ({hotel.district}), {_nights(hotel.nights)}"] if hotel else []
    steps = [be_there(outward), take(outward), *nights, be_there(back), take(back)]
    things = ["身份证 (identity card)", f"Booking {booking}", "发票 (invoices) of hotel and meals, for the accounts"]
    blocks = [
        f"# {outward.origin} → {outward.destination}", summary,
        "## When and where", _checkboxes(steps),
        "## To take along", _checkboxes(things),
    ]  # fmt: skip
    return _write(file, summary, blocks)


@skill(idempotent=True, retry_on=OSError)
def explain_no_trip(
    file: Path, budget: int, transport: Journey | None, hotel: Stay | None, problems: dict[str, str | None]
) -> Written:
    """Write why nothing was booked: what was found at best, what it costs, and what went wrong on the way."""
    cost = (transport.cost if transport else 0) + (hotel.cost if hotel else 0)
    over = f"the cheapest trip found costs ¥{cost:,}, ¥{cost - budget:,} more than the budget of ¥{budget:,}"
    refused = problems.get("booking")
    reason = "it was not agreed to, or failed" if refused else over if cost > budget else "a part of it was not found"
    summary = f"Nothing was booked: {reason}."
    found = [f"{_means(transport)}, ¥{transport.cost:,}" if transport else "no journey"]
    found += [f"{hotel.hotel}, {_nights(hotel.nights)}, ¥{hotel.cost:,}" if hotel else "no hotel"]
    blocks = ["# No trip", summary, "## Found at best", _bullets(found)]
    if troubles := [f"{name}: {' '.join(text.split())}" for name, text in problems.items() if text]:
        blocks += ["## On the way", _bullets(troubles)]
    return _write(file, summary, blocks)


def choose_journey(
    timetable: Sequence[Connection], means: Means, origin: str, destination: str, leave: date, nights: int
) -> Journey:
    """The cheapest way there on one day, and back `nights` days later."""
    if nights < 0:
        raise ValueError("nights must be 0 or more")
    outward = cheapest(timetable, means, origin, destination, leave)
    back = cheapest(timetable, means, destination, origin, leave + timedelta(days=nights))
    if nights == 0 and back.departs <= outward.arrives:
        raise NothingFound(f"the {means} back on {leave} leaves before one has arrived: stay a night")
    return Journey(means, outward, back, outward.price + back.price)


def cheapest(timetable: Iterable[Connection], means: Means, origin: str, destination: str, day: date) -> Connection:
    """The cheapest connection with a free seat; of those at one price the earliest."""
    wanted = (means, origin, destination, day)
    running = [each for each in timetable if (each.means, each.origin, each.destination, each.day) == wanted]
    free = [each for each in running if each.seats > 0]
    if not free:
        why = f"all {len(running)} are sold out" if running else "the timetable has none"
        raise NothingFound(f"no {means} from {origin} to {destination} on {day}: {why}")
    return min(free, key=lambda each: (each.price, each.departs))


def choose_hotel(hotels: Sequence[Hotel], city: str, stars: int, arrival: date, nights: int) -> Stay:
    """The cheapest hotel of a class that has a room on every night."""
    wanted = {str(arrival + timedelta(days=night)) for night in range(nights)}
    of_class = [hotel for hotel in hotels if (hotel.city, hotel.stars) == (city, stars)]
    free = [hotel for hotel in of_class if wanted.isdisjoint(hotel.full_on.split())]
    if not free:
        why = f"all {len(of_class)} are full on one of the nights" if of_class else "the list has none"
        raise NothingFound(f"no hotel of {stars} stars in {city} for {_nights(nights)} from {arrival}: {why}")
    best = min(free, key=lambda hotel: (hotel.price, hotel.name))
    return Stay(best.name, best.stars, best.district, arrival, nights, best.price * nights)


def be_there(connection: Connection) -> str:
    """When to be at the station or the airport."""
    by = datetime.combine(connection.day, connection.departs) - EARLY[connection.means]
    place = "airport" if connection.means == "flight" else "station"
    return f"{by:%Y-%m-%d %H:%M} at the {place} in {connection.origin}"


def take(connection: Connection) -> str:
    """Which flight or train, from when to when."""
    times = f"{connection.departs:%H:%M} to {connection.arrives:%H:%M}"
    return f"{connection.operator} {connection.number} to {connection.destination}, {times}"


def _means(journey: Journey) -> str:
    return f"{journey.outward.number} and {journey.back.number} ({journey.means})"


def _nights(nights: int) -> str:
    return "1 night" if nights == 1 else f"{nights} nights"


def _checkboxes(lines: Iterable[str]) -> str:
    return "\n".join(f"- [ ] {line}" for line in lines)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _write(file: Path, summary: str, blocks: Sequence[str]) -> Written:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n\n".join(blocks) + "\n", encoding="utf-8", newline="\n")
    return {"file": str(file), "bytes": file.stat().st_size, "summary": summary}
