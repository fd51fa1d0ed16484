"""The parser of the text form, by recursive descent.

    or_expression  := and_expression ("or" and_expression)*
    and_expression := operand ("and" operand)*
    operand        := "not" operand | "(" or_expression ")" | "exists" field | field comparison
                    | ("all" | "any") "(" [or_expression ("," or_expression)*] ")"
    comparison     := ("=" | "==" | "!=" | "<" | "<=" | ">" | ">=") value
                    | (">" | ">=") value "and" ("<" | "<=") value        one value within both bounds
                    | ["not"] ("in" list | "exists" | "between" value "and" value | "has" value
                    | ("has_any" | "has_all") list | ["i"] ("like" | "starts_with" | "ends_with" | "contains") text)
    list           := "(" [value ("," value)*] ")" | "[" [value ("," value)*] "]"

The operators from "has" on are words only after a field, so a field or a value may have their names. A text is a quoted
string or a bare word; a number is taken as it is written.

A field is a dotted path, `source.system`; backticks quote a key of any characters. A value is a quoted
string, a number, true, false or a bare word. A bare ISO date is a word, which `timestamp` reads as a date.
The parser does not depend on the filter classes: it calls a `Builder`, which the dict form uses as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, Generic, NamedTuple, NoReturn, ParamSpec, Protocol, TypeVar

from sennit.errors import FilterError
from sennit.filters.fields import KEYWORDS, Scalar, canonicalise, escape_key

MAX_TEXT_BYTES: Final = 64 * 1024
"""A longer filter is data rather than a condition, and belongs in the metadata of the records."""

MAX_DEPTH: Final = 64
"""Deeper than any meaningful filter, and shallow enough for recursion."""

_OPERATORS: Final = {"=": "eq", "==": "eq", "!=": "ne", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
TEXT_OPERATORS: Final = tuple(
    f"{case}{form}" for form in ("like", "starts_with", "ends_with", "contains") for case in ("", "i")
)
"""Operators that take a text; those that begin with `i` ignore the case."""
LIST_OPERATORS: Final = ("in", "has_any", "has_all")
"""Operators that take a list."""
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"} | {c: c for c in "\"'`\\/"}

_WORD: Final = re.compile(r"[^\s()\[\],=!<>\"'`]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(\.[0-9]*)?|(\.[0-9]+))([eE][+-]?[0-9]+)?")
_OPERATOR: Final = re.compile(r"[=!<>]=?")
_HEX: Final = "[0-9a-fA-F]"
_UNICODE: Final = re.compile(rf"\\u([dD][89abAB]{_HEX}{{2}})\\u([dD][c-fC-F]{_HEX}{{2}})|\\u({_HEX}{{4}})")

F = TypeVar("F")
P = ParamSpec("P")


class Builder(Protocol[F]):
    """Builds filters for the parser. Raises FilterError if a value is not valid for a field."""

    def condition(self, name: str, operator: str, value: object) -> F: ...
    def interval(self, name: str, low_operator: str, low: object, high_operator: str, high: object) -> F: ...
    def join(self, word: str, parts: Sequence[F], *, unwrap: bool = True) -> F: ...
    def negate(self, part: F) -> F: ...


class _Token(NamedTuple):
    kind: str
    """word, name (a word with backticks), string, operator, punctuation or end."""
    text: str
    start: int

    @property
    def keyword(self) -> str:
        """The punctuation mark, or the word in lower case; otherwise empty."""
        return self.text.lower() if self.kind in ("word", "punctuation") else ""

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else ascii(self.text[:60])


def parse_text(text: str, builder: Builder[F]) -> F:
    """Parse the text form. A blank text is a filter without conditions."""
    start = text[: MAX_TEXT_BYTES + 1].encode(errors="surrogatepass")
    if len(start) > MAX_TEXT_BYTES:
        # No `text=`: the message would repeat the whole text.
        raise FilterError(
            f"The filter is longer than {MAX_TEXT_BYTES:,} bytes; mark the records with a metadata field instead",
            position=len(start[:MAX_TEXT_BYTES].decode(errors="ignore")),
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        _fail("A lone surrogate is not valid Unicode; remove it", text, error.start)
    return _Parser(text, builder).parse()


def _fail(message: str, text: str, position: int) -> NoReturn:
    raise FilterError(message, text=text, position=position)


def _tokenize(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        start, char = at, text[at]
        if char.isspace():
            at += 1
        elif char in "()[],":
            at += 1
            tokens.append(_Token("punctuation", char, start))
        elif operator := _OPERATOR.match(text, at):
            if operator.group() not in _OPERATORS:
                _fail("A lone '!' is not an operator; write != or not", text, start)
            at = operator.end()
            tokens.append(_Token("operator", operator.group(), start))
        elif char in "\"'":
            value, at = _read_quoted(text, at)
            tokens.append(_Token("string", value, start))
        else:
            token, at = _read_name(text, at)
            tokens.append(token)
    return [*tokens, _Token("end", "", len(text))]


def _read_name(text: str, start: int) -> tuple[_Token, int]:
    kind, name, at = "word", "", start
    while True:
        if word := _WORD.match(text, at):
            name, at = name + word.group(), word.end()
        elif text.startswith("`", at):
            key, at = _read_quoted(text, at)
            kind, name = "name", name + escape_key(key)
        else:
            return _Token(kind, name, start), at


def _read_quoted(text: str, start: int) -> tuple[str, int]:
    pieces: list[str] = []
    at = start + 1
    while at < len(text) and text[at] != text[start]:
        if text[at] != "\\":
            pieces.append(text[at])
            at += 1
        elif code := _UNICODE.match(text, at):
            # JSON writes a character beyond U+FFFF as two escapes.
            units = "".join(unit or "" for unit in code.groups())
            try:
                pieces.append(bytes.fromhex(units).decode("utf-16-be"))
            except ValueError:
                _fail("This escape is half of a surrogate pair, not a character", text, at)
            at = code.end()
        elif text[at + 1 : at + 2] in _ESCAPES:
            pieces.append(_ESCAPES[text[at + 1]])
            at += 2
        else:
            _fail('Unknown escape; write \\\\ for a backslash, or \\n \\t \\" \\uXXXX', text, at)
    if at == len(text):
        _fail(f"This {text[start]} is never closed; add another at the end of the value", text, start)
    return "".join(pieces), at + 1


class _Parser(Generic[F]):
    """Parses one text, from left to right, without backtracking."""

    def __init__(self, text: str, builder: Builder[F]) -> None:
        self.text, self.builder, self.tokens = text, builder, _tokenize(text)
        self.at = self.level = 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        token = self.next
        self.at += token.kind != "end"
        return token

    def accept(self, *words: str) -> bool:
        """Take the next keyword or punctuation mark if it is one of these."""
        return self.next.keyword in words and bool(self.take())

    def fail(self, message: str, token: _Token) -> NoReturn:
        _fail(message, self.text, token.start)

    def expect(self, word: str, purpose: str) -> None:
        if not self.accept(word):
            self.fail(f"Expected {word!r} {purpose}, not {self.next}", self.next)

    def build(self, token: _Token, method: Callable[P, F], *args: P.args, **kwargs: P.kwargs) -> F:
        """Call a method of the builder. An error that it raises gets the position of the token."""
        try:
            return method(*args, **kwargs)
        except FilterError as error:
            raise FilterError(str(error), text=self.text, position=token.start) from error

    def parse(self) -> F:
        if self.next.kind == "end":
            return self.builder.join("and", ())
        found = self.parse_or()
        if self.next.kind != "end":
            advice = "quote a text that has spaces or operators"
            self.fail(f"Expected 'and', 'or' or the end, not {self.next}; {advice}", self.next)
        return found

    def parse_or(self) -> F:
        first, parts = self.next, [self.parse_and()]
        while self.accept("or"):
            parts.append(self.parse_and())
        return self.build(first, self.builder.join, "or", parts)

    def parse_and(self) -> F:
        first, parts = self.next, [self.parse_operand()]
        while self.accept("and"):
            parts.append(self.parse_operand())
        return self.build(first, self.builder.join, "and", parts)

    def parse_operand(self) -> F:
        first = self.next
        # A condition is one level below the deepest operator.
        if self.level > MAX_DEPTH:
            self.fail(f"The filter is nested deeper than {MAX_DEPTH} levels; write it flatter", first)
        self.level += 1
        if self.accept("not"):
            found = self.build(first, self.builder.negate, self.parse_operand())
        elif self.accept("("):
            found = self.parse_or()
            self.expect(")", "to close the parenthesis")
        elif first.keyword in ("all", "any") and self.tokens[self.at + 1].keyword == "(":
            found = self.parse_all_or_any()
        elif self.accept("exists"):
            found = self.build(first, self.builder.condition, self.parse_field(), "exists", True)
        else:
            found = self.parse_comparison(self.parse_field())
        self.level -= 1
        return found

    def parse_all_or_any(self) -> F:
        """Parse `all(...)` or `any(...)`, with any number of parts."""
        first, _ = self.take(), self.take()
        parts: list[F] = []
        while not self.accept(")"):
            if parts:
                self.expect(",", "or ')' between the parts")
            parts.append(self.parse_or())
        word = "and" if first.keyword == "all" else "or"
        return self.build(first, self.builder.join, word, parts, unwrap=False)

    def parse_field(self) -> str:
        token = self.take()
        if token.kind == "string":
            self.fail("Expected a field name; quotes are for values, backticks for field names", token)
        if token.kind not in ("word", "name"):
            self.fail(f"Expected a field name, not {token}", token)
        if token.keyword in KEYWORDS:
            self.fail(f"Expected a field name; a field called {token.text} is written `{token.text}`", token)
        try:
            return canonicalise(token.text)
        except FilterError as error:
            raise FilterError(str(error), text=self.text, position=token.start) from error

    def parse_comparison(self, name: str) -> F:
        first = self.next
        if first.kind == "operator":
            operator, value = _OPERATORS[self.take().text], self.parse_value(name)
            after = self.tokens[self.at + 1] if self.next.keyword == "and" else first
            if operator in ("gt", "gte") and after.kind == "operator" and after.text in ("<", "<="):
                return self.parse_upper_bound(name, first, operator, value)
            return self.build(first, self.builder.condition, name, operator, value)
        negated = self.accept("not")
        word = self.next.keyword
        if self.accept(*LIST_OPERATORS):
            found = self.build(first, self.builder.condition, name, word, self.parse_list(name, word))
        elif self.accept(*TEXT_OPERATORS):
            found = self.build(self.next, self.builder.condition, name, word, self.parse_text())
        elif self.accept("has"):
            found = self.build(first, self.builder.condition, name, word, self.parse_value(name))
        elif self.accept("exists"):
            found = self.build(first, self.builder.condition, name, "exists", True)
        elif self.accept("between"):
            found = self.parse_upper_bound(name, first, "gte", self.parse_value(name))
        else:
            known = "= != < <= > >= in, between, exists, has, like, starts_with, ends_with or contains"
            self.fail(f"Expected {known}, not {self.next}", self.next)
        return self.build(first, self.builder.negate, found) if negated else found

    def parse_upper_bound(self, name: str, first: _Token, low_operator: str, low: Scalar) -> F:
        """Parse `and 5` after between, or `and < 5` after an operator."""
        self.expect("and", "between the two bounds")
        high_operator = _OPERATORS[self.take().text] if first.kind == "operator" else "lte"
        high = self.parse_value(name)
        return self.build(first, self.builder.interval, name, low_operator, low, high_operator, high)

    def parse_list(self, name: str, operator: str) -> list[Scalar]:
        opening = self.take()
        if opening.keyword not in ("(", "["):
            self.fail(f"Expected a list such as (a, b) after {operator!r}, not {opening}", opening)
        closing = ")" if opening.text == "(" else "]"
        values: list[Scalar] = []
        while not self.accept(closing):
            values.append(self.parse_value(name))
            if not self.accept(","):
                self.expect(closing, "or ',' after a value")
                break
        return values

    def parse_text(self) -> str:
        """Parse a text; a bare number is the text that it is written as."""
        token = self.take()
        value = self.convert(token)
        return value if isinstance(value, str) else token.text

    def parse_value(self, name: str) -> Scalar:
        """Parse a value and check it against the field, so that an error points at this value."""
        token = self.take()
        value = self.convert(token)
        self.build(token, self.builder.condition, name, "eq", value)
        return value

    def convert(self, token: _Token) -> Scalar:
        if token.kind == "string":
            return token.text
        if token.kind == "name":
            self.fail("Backticks are for field names; put a value in double quotes", token)
        if token.kind != "word":
            self.fail(f"Expected a value, not {token}", token)
        if token.keyword in ("true", "false"):
            return token.keyword == "true"
        if token.keyword in KEYWORDS:
            self.fail(f'Expected a value; the text "{token.text}" needs quotes', token)
        if number := _NUMBER.fullmatch(token.text):
            whole = not any(number.groups()) and len(token.text) <= 20
            return int(token.text) if whole else float(token.text)
        return token.text
