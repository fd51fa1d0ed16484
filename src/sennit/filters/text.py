"""The words of a filter: how a field is named, and the text form, parsed by hand.

    either := both ("or" both)*
    both   := single ("and" single)*
    single := "not" single | "(" either ")" | ("all" | "any") "(" [either ("," either)*] ")"
            | "exists" field | field test
    test   := ("=" | "==" | "!=" | "<" | "<=" | ">" | ">=") value
            | (">" | ">=") value "and" ("<" | "<=") value        one value within both bounds
            | ["not"] ("in" list | "exists" | "between" value "and" value)
    list   := "(" [value ("," value)*] ")" | "[" [value ("," value)*] "]"

A field is a dotted path, `source.system`; backticks quote a key of any characters. A value is a quoted
string, a number, true, false or a bare word; a bare ISO date is a word that `timestamp` understands.
This module knows no filter classes: it calls a `Builder`, which the dict form uses as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, Generic, NamedTuple, NoReturn, ParamSpec, Protocol, TypeAlias, TypeVar

from sennit.errors import FilterError, InvalidInput
from sennit.records import check_metadata_key

BUILTIN_FIELDS: Final = (
    *("id", "collection", "kind", "title", "path", "url", "parent"),
    *("position", "timestamp", "sensitivity", "scope", "tenant"),
)

MAX_TEXT_BYTES: Final = 64 * 1024
"""A filter is a condition somebody wrote; more than this is data, and belongs into an index."""

MAX_DEPTH: Final = 64
"""Deep enough for any query a person or a program means, shallow enough to walk by recursion."""

_CLAIMED: Final = frozenset((*BUILTIN_FIELDS, "metadata"))
_RESERVED: Final = frozenset(("and", "or", "not", "in", "exists", "between", "true", "false"))
_OPERATORS: Final = {"=": "eq", "==": "eq", "!=": "ne", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"} | {c: c for c in "\"'`\\/"}

_PLAIN_KEY: Final = re.compile(r"[^\W\d][\w-]*")
_WORD: Final = re.compile(r"[^\s()\[\],=!<>\"'`]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(\.[0-9]*)?|(\.[0-9]+))([eE][+-]?[0-9]+)?")
_SIGN: Final = re.compile(r"[=!<>]=?")
_HEX: Final = "[0-9a-fA-F]"
_UNICODE: Final = re.compile(rf"\\u([dD][89abAB]{_HEX}{{2}})\\u([dD][c-fC-F]{_HEX}{{2}})|\\u({_HEX}{{4}})")

Scalar: TypeAlias = str | bool | int | float


def segments(field: str) -> tuple[str, ...]:
    r"""The path of a field name: dots separate keys, `\.` and `\\` are a dot and a backslash within a key.

    A built-in field is its one name. A metadata path starts with "metadata" only where its first key is
    also a built-in name (or "metadata"), so that each field has exactly one path.
    """
    if not isinstance(field, str):
        raise FilterError(f"A field name must be a string, not {type(field).__name__}")
    if "\\" not in field:
        return _normal(tuple(field.split(".")))
    keys = [""]
    for piece in re.findall(r"\\?.", field, re.DOTALL):
        if piece == ".":
            keys.append("")
        elif piece[0] == "\\" and piece not in ("\\.", "\\\\"):
            raise FilterError("A lone backslash in a field name: write \\\\ for one, \\. for a dot in a key")
        else:
            keys[-1] += piece[-1]
    return _normal(tuple(keys))


def canonical(path: tuple[str, ...]) -> str:
    """The one name of a field: equal fields have equal names, and `segments` gives the path back."""
    return ".".join(map(escaped, _normal(path)))


def named(field: str) -> str:
    """The one name of a field, from any way to write it."""
    return _named(field) if isinstance(field, str) else canonical(segments(field))


@lru_cache(1024)
def _named(field: str) -> str:
    # Kept: a condition asks for it more than once, and searches ask about the same few fields.
    return canonical(segments(field))


def escaped(key: str) -> str:
    """A key as one part of a field name."""
    if "." in key or "\\" in key:
        return key.replace("\\", "\\\\").replace(".", "\\.")
    return key


def _normal(keys: tuple[str, ...]) -> tuple[str, ...]:
    if not keys or not all(keys):
        raise FilterError("A field name must not be empty, nor any part between its dots")
    try:
        for key in keys:
            check_metadata_key(key)
    except InvalidInput as error:
        raise FilterError(f"Not a field name: {error}") from error
    if len(keys) == 1 and keys[0] in BUILTIN_FIELDS:
        return keys
    if len(keys) > 1 and keys[0] == "metadata":
        keys = keys[1:]
    return ("metadata", *keys) if keys[0] in _CLAIMED else keys


def field_text(field: str) -> str:
    """A field as the text form writes it."""
    return ".".join(map(_key_text, segments(field)))


def _key_text(key: str) -> str:
    if _PLAIN_KEY.fullmatch(key) and key.lower() not in _RESERVED:
        return key
    return "`" + string_text(key)[1:-1].replace("`", "\\`") + "`"


def string_text(value: str) -> str:
    """A string value as the text form writes it."""
    return json.dumps(value, ensure_ascii=False)


F = TypeVar("F")
P = ParamSpec("P")


class Builder(Protocol[F]):
    """What the parser asks for; it raises FilterError where a value does not suit a field."""

    def condition(self, name: str, operator: str, value: object) -> F: ...
    def interval(self, name: str, low_test: str, low: object, high_test: str, high: object) -> F: ...
    def join(self, word: str, parts: Sequence[F], *, unwrap: bool = True) -> F: ...
    def negate(self, part: F) -> F: ...


class _Token(NamedTuple):
    kind: str
    """word, name (a word with backticks), string, operator, mark or end."""
    text: str
    start: int

    @property
    def keyword(self) -> str:
        """The mark, or the word in lower case; otherwise nothing."""
        return self.text.lower() if self.kind in ("word", "mark") else ""

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else ascii(self.text[:60])


def parse_text(text: str, build: Builder[F]) -> F:
    """The filter a text describes; a blank text is no condition at all."""
    start = text[: MAX_TEXT_BYTES + 1].encode(errors="surrogatepass")
    if len(start) > MAX_TEXT_BYTES:
        # Without the text, which the message would repeat.
        raise FilterError(
            f"The filter is longer than {MAX_TEXT_BYTES:,} bytes; mark the records with a metadata field instead",
            position=len(start[:MAX_TEXT_BYTES].decode(errors="ignore")),
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        _fail("A lone surrogate is not valid Unicode; remove it", text, error.start)
    return _Parser(text, build).whole()


def _fail(message: str, text: str, position: int) -> NoReturn:
    raise FilterError(message, text=text, position=position)


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        start, char = at, text[at]
        if char.isspace():
            at += 1
        elif char in "()[],":
            at += 1
            found.append(_Token("mark", char, start))
        elif sign := _SIGN.match(text, at):
            if sign.group() not in _OPERATORS:
                _fail("A lone '!' is no operator; write != or not", text, start)
            at = sign.end()
            found.append(_Token("operator", sign.group(), start))
        elif char in "\"'":
            value, at = _quoted(text, at)
            found.append(_Token("string", value, start))
        else:
            token, at = _name(text, at)
            found.append(token)
    return [*found, _Token("end", "", len(text))]


def _name(text: str, start: int) -> tuple[_Token, int]:
    kind, name, at = "word", "", start
    while True:
        if word := _WORD.match(text, at):
            name, at = name + word.group(), word.end()
        elif text.startswith("`", at):
            key, at = _quoted(text, at)
            kind, name = "name", name + escaped(key)
        else:
            return _Token(kind, name, start), at


def _quoted(text: str, start: int) -> tuple[str, int]:
    pieces: list[str] = []
    at = start + 1
    while at < len(text) and text[at] != text[start]:
        if text[at] != "\\":
            pieces.append(text[at])
            at += 1
        elif code := _UNICODE.match(text, at):
            # JSON writers spell a character beyond U+FFFF as two escapes.
            units = "".join(unit or "" for unit in code.groups())
            try:
                pieces.append(bytes.fromhex(units).decode("utf-16-be"))
            except ValueError:
                _fail("This escape is half of a surrogate pair and no character", text, at)
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
    """One text, read once from left to right."""

    def __init__(self, text: str, build: Builder[F]) -> None:
        self.text, self.build, self.tokens = text, build, _tokens(text)
        self.at = self.level = 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        token = self.next
        self.at += token.kind != "end"
        return token

    def accept(self, *words: str) -> bool:
        """Take the next keyword or mark if it is one of these."""
        return self.next.keyword in words and bool(self.take())

    def fail(self, message: str, token: _Token) -> NoReturn:
        _fail(message, self.text, token.start)

    def expect(self, word: str, why: str) -> None:
        if not self.accept(word):
            self.fail(f"Expected {word!r} {why}, not {self.next}", self.next)

    def made(self, token: _Token, make: Callable[P, F], *args: P.args, **kwargs: P.kwargs) -> F:
        """What the builder makes; its complaint is about this token."""
        try:
            return make(*args, **kwargs)
        except FilterError as error:
            raise FilterError(str(error), text=self.text, position=token.start) from error

    def whole(self) -> F:
        if self.next.kind == "end":
            return self.build.join("and", ())
        found = self.either()
        if self.next.kind != "end":
            advice = "quote a text that has spaces or signs"
            self.fail(f"Expected 'and', 'or' or the end, not {self.next}; {advice}", self.next)
        return found

    def either(self) -> F:
        first, parts = self.next, [self.both()]
        while self.accept("or"):
            parts.append(self.both())
        return self.made(first, self.build.join, "or", parts)

    def both(self) -> F:
        first, parts = self.next, [self.single()]
        while self.accept("and"):
            parts.append(self.single())
        return self.made(first, self.build.join, "and", parts)

    def single(self) -> F:
        first = self.next
        # A condition is a level below the deepest operator.
        if self.level > MAX_DEPTH:
            self.fail(f"The filter is nested deeper than {MAX_DEPTH} levels; write it flatter", first)
        self.level += 1
        if self.accept("not"):
            found = self.made(first, self.build.negate, self.single())
        elif self.accept("("):
            found = self.either()
            self.expect(")", "to close the parenthesis")
        elif first.keyword in ("all", "any") and self.tokens[self.at + 1].keyword == "(":
            found = self.listed()
        elif self.accept("exists"):
            found = self.made(first, self.build.condition, self.field(), "exists", True)
        else:
            found = self.test(self.field())
        self.level -= 1
        return found

    def listed(self) -> F:
        """`all(...)` or `any(...)`, which may have no part, or one."""
        first, _ = self.take(), self.take()
        parts: list[F] = []
        while not self.accept(")"):
            if parts:
                self.expect(",", "or ')' between the parts")
            parts.append(self.either())
        word = "and" if first.keyword == "all" else "or"
        return self.made(first, self.build.join, word, parts, unwrap=False)

    def field(self) -> str:
        token = self.take()
        if token.kind == "string":
            self.fail("Expected a field name; quotes are for values, backticks for odd field names", token)
        if token.kind not in ("word", "name"):
            self.fail(f"Expected a field name, not {token}", token)
        if token.keyword in _RESERVED:
            self.fail(f"Expected a field name; a field called {token.text} is written `{token.text}`", token)
        try:
            return named(token.text)
        except FilterError as error:
            raise FilterError(str(error), text=self.text, position=token.start) from error

    def test(self, name: str) -> F:
        first = self.next
        if first.kind == "operator":
            test, value = _OPERATORS[self.take().text], self.value(name)
            after = self.tokens[self.at + 1] if self.next.keyword == "and" else first
            if test in ("gt", "gte") and after.kind == "operator" and after.text in ("<", "<="):
                return self.within(name, first, test, value)
            return self.made(first, self.build.condition, name, test, value)
        negated = self.accept("not")
        if self.accept("in"):
            found = self.made(first, self.build.condition, name, "in", self.values(name))
        elif self.accept("exists"):
            found = self.made(first, self.build.condition, name, "exists", True)
        elif self.accept("between"):
            found = self.within(name, first, "gte", self.value(name))
        else:
            self.fail(f"Expected = != < <= > >= in, between or exists, not {self.next}", self.next)
        return self.made(first, self.build.negate, found) if negated else found

    def within(self, name: str, first: _Token, low_test: str, low: Scalar) -> F:
        """The upper bound: `and 5` after between, `and < 5` after an operator."""
        self.expect("and", "between the two bounds")
        high_test = _OPERATORS[self.take().text] if first.kind == "operator" else "lte"
        return self.made(first, self.build.interval, name, low_test, low, high_test, self.value(name))

    def values(self, name: str) -> list[Scalar]:
        opening = self.take()
        if opening.keyword not in ("(", "["):
            self.fail(f"Expected a list such as (a, b) after 'in', not {opening}", opening)
        closing = ")" if opening.text == "(" else "]"
        found: list[Scalar] = []
        while not self.accept(closing):
            found.append(self.value(name))
            if not self.accept(","):
                self.expect(closing, "or ',' after a value")
                break
        return found

    def value(self, name: str) -> Scalar:
        """The next value, tried on the field, so that an error points at this very value."""
        token = self.take()
        value = self.read(token)
        self.made(token, self.build.condition, name, "eq", value)
        return value

    def read(self, token: _Token) -> Scalar:
        if token.kind == "string":
            return token.text
        if token.kind == "name":
            self.fail("Backticks are for field names; put a value in double quotes", token)
        if token.kind != "word":
            self.fail(f"Expected a value, not {token}", token)
        if token.keyword in ("true", "false"):
            return token.keyword == "true"
        if token.keyword in _RESERVED:
            self.fail(f'Expected a value; the text "{token.text}" needs its quotes', token)
        if number := _NUMBER.fullmatch(token.text):
            whole = not any(number.groups()) and len(token.text) <= 20
            return int(token.text) if whole else float(token.text)
        return token.text
