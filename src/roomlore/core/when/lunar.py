"""Festivals of the Chinese calendar, reckoned from the moon and the sun, so that no table goes out of date.

A month begins on the day of the new moon, by the clock of China, and takes its number from the sun's longitude that
falls within it (Meeus, Astronomical Algorithms, chapters 25 and 49, shortened). It agrees with the printed
calendar from 1921 to 2056; later a new moon falls too near midnight for certainty.
"""

from datetime import date
from functools import lru_cache
from itertools import pairwise
from math import floor, radians, sin

_LUNATION = 29.530588861
_YEAR = 365.2422
_CHINA = 8 / 24
_CLOCK_ERROR = 64 / 86_400
_ORDINAL = 1_721_425 - 0.5
_PERIODIC = (
    (-0.40720, 0, 0, 1, 0),
    (0.17241, 1, 1, 0, 0),
    (0.01608, 0, 0, 2, 0),
    (0.01039, 0, 0, 0, 2),
    (0.00739, 1, -1, 1, 0),
    (-0.00514, 1, 1, 1, 0),
    (0.00208, 2, 2, 0, 0),
    (-0.00111, 0, 0, 1, -2),
    (-0.00057, 0, 0, 1, 2),
    (0.00056, 1, 1, 2, 0),
    (-0.00042, 0, 0, 3, 0),
    (0.00042, 1, 1, 0, 2),
    (0.00038, 1, 1, 0, -2),
    (-0.00024, 1, -1, 2, 0),
)


def festival(year: int, month: int, day: int) -> date:
    """The day of the Gregorian `year` that is `day` of the Chinese `month` (1 to 10, never the leap month)."""
    return date.fromordinal(_months(year)[month - 1] + day - 1)


def clear_and_bright(year: int) -> date:
    """Qingming: the sun's longitude reaches 15 degrees."""
    return date.fromordinal(_solar_term(year, 15))


@lru_cache(maxsize=256)
def _months(year: int) -> tuple[int, ...]:
    """The first days of months 1 to 10.

    Month 11 holds the winter solstice. Where 13 months lie between two of these, the first one without a principal
    term is the leap month.
    """
    starts = [_new_moon_before(_solar_term(year - 1, 270))]
    last = _new_moon_before(_solar_term(year, 270))
    while starts[-1] < last:
        starts.append(_new_moon_before(starts[-1] + 31))
    if len(starts) == 14:
        terms = [_solar_term(year, longitude) for longitude in range(0, 360, 30)]
        months = pairwise(starts[1:])
        leap = next(start for start, end in months if not any(start <= term < end for term in terms))
        starts.remove(leap)
    return tuple(starts[2:12])


@lru_cache(maxsize=1024)
def _new_moon_before(day: int) -> int:
    """The ordinal of the last day up to `day` on which China sees a new moon."""
    number = floor((day + _ORDINAL - 2_451_550.1) / _LUNATION) + 1
    while (found := _ordinal(_new_moon(number))) > day:
        number -= 1
    return found


@lru_cache(maxsize=1024)
def _solar_term(year: int, longitude: int) -> int:
    """The ordinal of the day of `year` on which the sun reaches a longitude in degrees."""
    moment = (
        date(year, 3, 20).toordinal() + _ORDINAL + (longitude if longitude < 285 else longitude - 360) / 360 * _YEAR
    )
    for _ in range(4):
        moment += ((longitude - _sun(moment) + 180) % 360 - 180) / 360 * _YEAR
    return _ordinal(moment)


def _ordinal(moment: float) -> int:
    return floor(moment - _CLOCK_ERROR + _CHINA - _ORDINAL)


def _new_moon(number: int) -> float:
    """The Julian day of a new moon, counted from that of January 2000."""
    t = number / 1236.85
    eccentricity = 1 - 0.002516 * t
    sun = radians(2.5534 + 29.10535670 * number)
    moon = radians(201.5643 + 385.81693528 * number + 0.0107582 * t * t)
    node = radians(160.7108 + 390.67050284 * number - 0.0016118 * t * t)
    shift = sum(size * eccentricity**e * sin(s * sun + m * moon + n * node) for size, e, s, m, n in _PERIODIC)
    return 2_451_550.09766 + _LUNATION * number + 0.00015437 * t * t + shift


def _sun(moment: float) -> float:
    """The apparent longitude of the sun in degrees."""
    t = (moment - 2_451_545) / 36_525
    anomaly = radians(357.52911 + 35_999.05029 * t)
    centre = (1.914602 - 0.004817 * t) * sin(anomaly) + 0.019993 * sin(2 * anomaly) + 0.000289 * sin(3 * anomaly)
    return 280.46646 + 36_000.76983 * t + centre - 0.00569 - 0.00478 * sin(radians(125.04 - 1934.136 * t))
