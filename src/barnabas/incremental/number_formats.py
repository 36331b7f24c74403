"""Numbers as text by a pattern, as Postgres' `to_char` has it. No I/O."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

_ROMAN = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"),
    (4, "IV"), (1, "I"),
)  # fmt: skip


MOST_PATTERN = 1_000
_EXACT = Context(prec=MOST_PATTERN + 400)  # digits: the largest double has 309 before the point


def _rounded(number: Decimal, digits: int) -> Decimal:
    """A number with so many digits behind the point."""
    return number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _EXACT)


def roman(number: int) -> str:
    """A number in Roman numerals."""
    made = ""
    for value, letters in _ROMAN:
        made += letters * (number // value)
        number %= value
    return made


def ordinal_suffix(number: int, suffix: str) -> str:
    """`st`, `nd`, `rd` or `th` behind a number, in the case of `suffix`."""
    made = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return made.upper() if suffix.isupper() else made


def number_text(value: str, pattern: str) -> str:
    """A number as text. Raises ValueError: it is no number, or the pattern is longer than `MOST_PATTERN`."""
    if len(pattern) > MOST_PATTERN:
        raise ValueError(f"the pattern of to_char has more than {MOST_PATTERN} characters")
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise ValueError(f"to_char cannot read the number {value!r}") from None
    if not number.is_finite():
        return re.sub("[90]", "#", pattern)
    upper = pattern.upper()
    if "RN" in upper:
        whole = int(number.to_integral_value(ROUND_HALF_UP))
        text = roman(whole) if 0 < whole < 4000 else "#" * 15
        text = text if "RN" in pattern else text.lower()
        return text if upper.startswith("FM") else text.rjust(15)
    if "EEEE" in upper:
        return _scientific(number, upper)
    return _filled(number, _Picture(pattern))


def _scientific(number: Decimal, upper: str) -> str:
    digits = len(re.findall("[90]", upper.partition(".")[2]))
    place = number.adjusted() if number else 0
    mantissa = str(_rounded(number.scaleb(-place, _EXACT), digits))
    exponent = f"{place:+d}"
    sign = "" if number < 0 or upper.startswith("FM") else " "
    return f"{sign}{mantissa}e{exponent[0]}{exponent[1:].rjust(2, '0')}"


class _Picture:
    """A pattern of a number: the places before and behind the point, and the words around them."""

    def __init__(self, pattern: str) -> None:
        upper = pattern.upper()
        self.is_plain = upper.startswith("FM")
        self.body = pattern[2:] if self.is_plain else pattern
        self.words = re.findall(r'"[^"]*"|MI|PL|SG|PR|TH|[90DSGLV.,]|.', self.body, re.IGNORECASE | re.DOTALL)
        known = [each.upper() for each in self.words]
        point = next((at for at, each in enumerate(known) if each in (".", "D")), len(known))
        self.shift = sum(each in "90" for each in known[known.index("V") :]) if "V" in known else 0
        self.before = sum(each in ("9", "0") for each in known[:point])
        self.behind = sum(each in ("9", "0") for each in known[point:])
        self.zero = next((at for at, each in enumerate(known[:point]) if each == "0"), None)
        self.has_sign = bool({"S", "SG", "MI", "PR"} & set(known))
        self.last_zero = max((at for at, each in enumerate(known) if each == "0" and at > point), default=point)


class _Filling:
    """The digits of a number in the places of a pattern, word by word."""

    def __init__(self, number: Decimal, picture: _Picture) -> None:
        scaled = _rounded(number.scaleb(picture.shift, _EXACT), picture.behind)
        whole, _, fraction = f"{scaled.copy_abs():f}".partition(".")
        whole = "" if whole == "0" and picture.behind else whole
        self.picture, self.is_negative, self._whole = picture, scaled < 0, int(whole or 0)
        self.is_over = len(whole) > picture.before
        self._digits = iter("#" * picture.before if self.is_over else whole.rjust(picture.before))
        self._rest = iter("#" * picture.behind if self.is_over else fraction)
        self._blank = "" if picture.is_plain else " "
        self._has_begun = False
        self.is_behind = False
        self.made: list[str] = []
        self.sign_at: int | None = None

    def add(self, at: int, word: str) -> None:
        """Take the next word of the pattern."""
        upper = word.upper()
        if upper in ("9", "0"):
            self.made.append(next(self._rest) if self.is_behind else self._digit(at))
        elif upper in (".", "D"):
            self.sign_at = len(self.made) if self.sign_at is None else self.sign_at
            self.is_behind = self._has_begun = True
            self.made.append(".")
        elif upper in (",", "G"):
            self.made.append("," if self._has_begun else self._blank)
        else:
            self.made.append(self._other(word, upper))

    def _digit(self, at: int) -> str:
        digit, zero = next(self._digits), self.picture.zero
        if digit == " " and zero is not None and at >= zero:
            digit = "0"
        if digit != " " and not self._has_begun:
            self._has_begun, self.sign_at = True, len(self.made)
        return digit if digit != " " else self._blank

    def _other(self, word: str, upper: str) -> str:
        """A sign, a suffix, or text that stays."""
        match upper:
            case "MI":
                return "-" if self.is_negative else self._blank
            case "PL":
                return self._blank if self.is_negative else "+"
            case "SG":
                return "-" if self.is_negative else "+"
            case "S" | "V" | "PR":
                return ""
            case "L":
                return self._blank
            case "TH":
                return "" if self.is_negative or self.is_over else ordinal_suffix(self._whole, word)
        return word.strip('"') if word.startswith('"') else word


def _filled(number: Decimal, picture: _Picture) -> str:
    filling = _Filling(number, picture)
    for at, word in enumerate(picture.words):
        filling.add(at, word)
    made = filling.made
    if picture.is_plain and filling.is_behind and not filling.is_over:
        _without_zeros(made, picture)
        if not any(each.isdigit() for each in made) and picture.before:
            made[made.index(".") - 1] = "0"
    sign_at = len(made) if filling.sign_at is None else filling.sign_at
    return _signed(made, picture, sign_at, is_negative=filling.is_negative)


def _without_zeros(made: list[str], picture: _Picture) -> None:
    """Drop zeros at the end that the pattern does not ask for."""
    for at in range(len(made) - 1, -1, -1):
        if picture.words[at] not in ("9", "0"):
            if picture.words[at] in (".", "D", "d"):
                break
            continue
        if at <= picture.last_zero or made[at] != "0":
            break
        made[at] = ""


def _signed(made: list[str], picture: _Picture, at: int, *, is_negative: bool) -> str:
    known = [each.upper() for each in picture.words]
    if "S" in known:
        sign, place = "-" if is_negative else "+", known.index("S")
        made[place] = ""
        made.insert(at if place < at else place + 1, sign)
        return "".join(made)
    blank = "" if picture.is_plain else " "
    if "PR" in known:
        return "".join([*made[:at], "<" if is_negative else blank, *made[at:], ">" if is_negative else blank])
    if picture.has_sign:
        return "".join(made)
    sign = "-" if is_negative else blank
    return "".join([*made[:at], sign, *made[at:]])
