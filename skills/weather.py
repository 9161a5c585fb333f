"""The forecast for a city and a day, from a file of forecasts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from fsm_agent import skill

FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "sky": str, "rain_percent": int, "rain_mm": (int, float), "low": int, "high": int, "uv_index": int,
}  # fmt: skip


class ForecastError(ValueError):
    """There is no forecast, or the file is damaged. The message says what there is, and what to do."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """A day's weather: the chance of rain in percent, how much in mm, temperatures in °C, and the UV index."""

    city: str
    day: date
    sky: str
    rain_percent: int
    rain_mm: float
    low: int
    high: int
    uv_index: int


@skill(idempotent=True, retry_on=OSError)
def read_forecast(file: Path, city: str, today: date, days_ahead: int) -> Forecast:
    """Read the forecast for a city on the day that is `days_ahead` of today.

    Raises ForecastError if the file is missing or damaged, or has no forecast for that city and day.
    """
    if not file.is_file():
        raise ForecastError(f"there is no file {file} in {Path.cwd()}: give the path of the forecasts")
    try:
        content = json.loads(file.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ForecastError(f"{file} is not JSON in UTF-8: get the forecasts again") from error
    return find_forecast(content, str(file), city, today + timedelta(days=days_ahead))


def find_forecast(content: Any, name: str, city: str, day: date) -> Forecast:
    """The forecast in what a file holds: `{"cities": {CITY: {DAY: {…}}}}`; `name` is what messages call the file."""
    cities = _object(_object(content, name).get("cities"), f"{name}, cities")
    if city not in cities:
        raise ForecastError(f"{name} has no forecast for {city}; it has {', '.join(sorted(cities)) or 'no city'}")
    days = _object(cities[city], f"{name}, {city}")
    if str(day) not in days:
        known = f"it has {min(days)} to {max(days)}" if days else "it has no day"
        raise ForecastError(f"{name} has no forecast for {city} on {day}; {known}")
    place = f"{name}, {city}, {day}"
    values = _object(days[str(day)], place)
    for field, kind in FIELDS.items():
        if not isinstance(values.get(field), kind) or isinstance(values[field], bool):
            raise ForecastError(f"{place}: {field!r} is missing or of the wrong type: get the forecasts again")
    return Forecast(city, day, **{field: values[field] for field in FIELDS})


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ForecastError(f"{place}: there must be an object: get the forecasts again")
    return value
