"""Functions that Go works out by other formulas than C, so that their last digit agrees with Go's.

Source: the Cephes library, from which Go took sine, cosine and tangent.
"""

from __future__ import annotations

import math
from typing import Final

# Pi/4 in three parts, so that multiples of it are taken off without losing digits.
_PI4: Final = (7.85398125648498535156e-1, 3.77489470793079817668e-8, 2.69515142907905952645e-15)
_SIN: Final = (
    1.58962301576546568060e-10,
    -2.50507477628578072866e-8,
    2.75573136213857245213e-6,
    -1.98412698295895385996e-4,
    8.33333333332211858878e-3,
    -1.66666666666666307295e-1,
)
_COS: Final = (
    -1.13585365213876817300e-11,
    2.08757008419747316778e-9,
    -2.75573141792967388112e-7,
    2.48015872888517045348e-5,
    -1.38888888888730564116e-3,
    4.16666666666665929218e-2,
)
_TAN_P: Final = (-1.30936939181383734205e4, 1.15351664838587416140e6, -1.79565251976484877988e7)
_TAN_Q: Final = (
    1.36812963470692954678e4,
    -1.32089234440210967447e6,
    2.50083801823357915839e7,
    -5.38695755929454629881e7,
)
# Beyond this Go reduces the angle in another way; C's functions are as good there.
_LARGE: Final = float(1 << 29)
_PER_LN10: Final = 0.434294481903251827651128918916605082


def _evaluate_polynomial(factors: tuple[float, ...], x: float) -> float:
    result = factors[0]
    for factor in factors[1:]:
        result = result * x + factor
    return result


def _reduce_angle(x: float) -> tuple[int, float]:
    """Return the octant of an angle and what is left of the angle in it."""
    octant = int(x * (4 / math.pi))
    octant += octant & 1
    y = float(octant)
    return octant & 7, ((x - y * _PI4[0]) - y * _PI4[1]) - y * _PI4[2]


def _sine(z: float) -> float:
    zz = z * z
    return z + z * zz * _evaluate_polynomial(_SIN, zz)


def _cosine(z: float) -> float:
    zz = z * z
    return 1.0 - 0.5 * zz + zz * zz * _evaluate_polynomial(_COS, zz)


def sin(x: float) -> float:
    """Return the sine of an angle in radians."""
    if not 0 < abs(x) < _LARGE:
        return math.sin(x)
    octant, z = _reduce_angle(abs(x))
    result = _cosine(z) if octant & 3 in (1, 2) else _sine(z)
    return -result if (x < 0) is not (octant > 3) else result


def cos(x: float) -> float:
    """Return the cosine of an angle in radians."""
    if not abs(x) < _LARGE:
        return math.cos(x)
    octant, z = _reduce_angle(abs(x))
    result = _sine(z) if octant & 3 in (1, 2) else _cosine(z)
    return -result if (octant > 3) is not (octant & 3 > 1) else result


def tan(x: float) -> float:
    """Return the tangent of an angle in radians."""
    if not 0 < abs(x) < _LARGE:
        return math.tan(x)
    octant, z = _reduce_angle(abs(x))
    zz = z * z
    if zz > 1e-14:
        below = _evaluate_polynomial((1.0, *_TAN_Q), zz)
        result = z + z * (zz * _evaluate_polynomial(_TAN_P, zz) / below)
    else:
        result = z
    if octant & 2:
        result = -1 / result
    return -result if x < 0 else result


def log10(x: float) -> float:
    """Return the logarithm to base 10 of a positive number.

    Raises:
        ValueError: the number is not positive.
    """
    return math.log(x) * _PER_LN10
