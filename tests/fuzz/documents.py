"""Random configurations: files, variables and flags as people write them, and as nobody should.

An `Author` writes from a seed, so that what it wrote can be written again. Whatever it means to be
a secret has a mark of its own in it, to be looked for in everything that is said afterwards.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from typing import Any

from otel_gpu.config.keys import Key, keys
from tests.fuzz.settings_words import GOOD, HOSTILE, STANDARD, TEXTS

BARE = re.compile(r"[A-Za-z/.*$][\w./:*{}$+-]*|[0-9]+(?:ms|s|m|h)?|")
SECTION_ODDS: tuple[Any, ...] = (None, {}, [], "on", 1)
OWN = tuple(key for key in keys() if key.path[0] != "pipeline" and key.path != ("version",))
DEFAULTS = {key.path[-1]: (key.default,) for key in keys()}
PARTS = ("prometheus", "otlp", "otlp", "otlp", "file", "console")


@dataclass(frozen=True, slots=True)
class Given:
    """All that a configuration is made from, and the marks that nobody may see again."""

    content: bytes | None  # of the file; None: there is no file
    environ: Mapping[str, str]
    flags: Mapping[str, object]
    secrets: tuple[str, ...]


class Author:
    """Writes one configuration. The odds of it being sound are about one in two."""

    def __init__(self, seed: object) -> None:
        self._chance = random.Random(f"{seed}")  # noqa: S311 - it is to be the same each time
        self._environ: dict[str, str] = {}
        self._secrets: list[str] = []
        self._faults = self._chance.choice((0.0, 0.0, 0.03, 0.3))

    def given(self) -> Given:
        """Write it."""
        content = self._content() if self._is(0.9) else None
        for _ in range(self._few()):
            self._variable()
        return Given(content, dict(self._environ), self._flags(), tuple(self._secrets))

    def _content(self) -> bytes:
        text = self._written(self._tree())
        if self._is(self._faults):
            text = self._torn(text)
            self._secrets.clear()  # they may stand anywhere now, under any key
        end = self._chance.choice(("\n", "\n", "\n", "\r\n"))
        head = self._chance.choice((b"", b"", b"", b"\xef\xbb\xbf"))
        return head + text.replace("\n", end).encode(errors="surrogatepass")

    def _tree(self) -> dict[str, Any]:
        tree: dict[str, Any] = {} if self._is(self._faults / 4) else {"version": 1}
        for key in self._chance.sample(OWN, self._few()):
            self._put(tree, key)
        if self._is(0.7):
            tree["pipeline"] = [self._part() for _ in range(self._chance.choice((1, 1, 1, 1, 3)))]
        return {self._key(name): value for name, value in tree.items()}

    def _put(self, tree: dict[str, Any], key: Key) -> None:
        for name in key.path[:-1]:
            below: Any = tree.setdefault(name, {})
            if not isinstance(below, dict):
                return
            tree = below
        if key.holds == "section":
            value = self._chance.choice(SECTION_ODDS) if self._is(self._faults) else None
            tree.setdefault(key.path[-1], value if value is not None else {})
        else:
            tree[self._key(key.path[-1])] = self._value(key.path[-1])

    def _value(self, name: str) -> Any:
        if self._is(self._faults):
            return self._hostile()
        writers: Mapping[str, Callable[[], Any]] = {
            "headers": self._headers,
            "endpoint": self._endpoint,
        }
        if name in writers:
            return writers[name]()
        value = self._chance.choice(GOOD.get(name, DEFAULTS[name]))
        return self._by_reference(value) if isinstance(value, str) and self._is(0.1) else value

    def _hostile(self, depth: int = 0) -> Any:
        draw = self._chance.random()
        if draw < 0.008 and not depth:
            return self._deep()
        if draw < 0.25 and depth < 3:
            return [self._hostile(depth + 1) for _ in range(self._few())]
        if draw < 0.4 and depth < 3:
            return {self._word(): self._hostile(depth + 1) for _ in range(self._few())}
        if draw < 0.5:
            return self._chance.choice(self._chance.choice(tuple(GOOD.values())))
        return self._chance.choice(HOSTILE)

    def _deep(self) -> Any:
        value: Any = 1
        for _ in range(self._chance.choice((10, 60, 120, 200, 300))):
            value = [value] if self._is(0.5) else {"a": value}
        return value

    def _part(self) -> Any:
        name = self._chance.choice(PARTS)
        options: dict[str, Any] = {"path": f"{self._number()}.jsonl"} if name == "file" else {}
        if name == "prometheus":
            options["address"] = f":{self._chance.randrange(1024, 60_000)}"
        known = [key for key in keys() if key.path[:2] == ("pipeline", name) and len(key.path) > 2]
        for key in self._chance.sample(known, min(len(known), self._few())):
            if not self._is_taken(key):
                self._put(options, Key(key.path[2:], "", None, required=False, holds=key.holds))
        if name == "otlp" and self._is(0.5):
            name_of_secret = self._chance.choice(("headers", "endpoint"))
            options[name_of_secret] = self._value(name_of_secret)
        if self._is(self._faults / 2):
            return self._chance.choice((name, None, {name: None, "more": {}}, [name], {}))
        return {self._key(name): options or (None if self._is(0.5) else {})}

    def _is_taken(self, key: Key) -> bool:
        """Whether two parts would get in each other's way, or a half would lack the other."""
        return key.path[-1] in {"address", "path", "directory", "cert_file", "key_file"}

    def _headers(self) -> Any:
        mark = self._mark()
        sound = {
            "authorization": f"Bearer {mark}",
            "X-Api-Key": self._by_reference(mark) if self._is(0.4) else mark,
        }
        if not self._is(self._faults * 2):
            return sound
        odd: Sequence[Any] = (
            f"authorization=Bearer {mark}",
            [mark],
            [f"authorization: {mark}"],
            {"authorization": [mark]},
            {"authorization": {"is": mark}},
            {"authorization": f"{mark}\n"},
            {"authorization": f"ü{mark}"},
            {f"Bearer {mark}": "authorization"},
            {"": mark},
            {"authorization": f"${{UNSET}}{mark}"},
            {"authorization": f"${{{mark}"},
        )
        return self._chance.choice(odd)

    def _endpoint(self) -> str:
        mark = self._mark()
        sound = (
            f"http://me:{mark}@collector:4318",
            f"https://{mark}@collector/otlp",
            f"http://collector:4318/?key={mark}",
            "collector:4317",
        )
        odd = (
            f"me:{mark}@collector:4318",
            f"htp://me:{mark}@collector",
            f"http://me:{mark}@",
            f"http://me:{mark}@collector:port",
            f"http:/me:{mark}@collector",
            f"//me:{mark}@collector:1",
            f"http://me:{mark} @collector",
            f"http://me:@{mark}/@collector:99999",
            f"HTTP://me:{mark}@[::1",
            f"collector:4318?token={mark}",
        )
        text = self._chance.choice(
            odd if self._is(self._faults * 2) else sound[: 3 + self._is(0.1)]
        )
        return self._by_reference(text) if self._is(0.2) else text

    def _by_reference(self, text: str) -> str:
        name = f"V{self._number()}"
        if not text.isascii() or "\0" in text:
            return text
        self._environ[name] = text
        return f"${{{name}}}"

    def _mark(self) -> str:
        self._secrets.append(f"hush{self._chance.getrandbits(48):012x}")
        return self._secrets[-1]

    def _number(self) -> int:
        return self._chance.randrange(10**6)

    def _key(self, name: str) -> str:
        return self._torn(name) or "x" if self._is(self._faults / 4) else name

    def _word(self) -> str:
        known = self._chance.choice(keys()).path[-1]
        return str(self._chance.choice((known, known, *TEXTS[:12])))

    def _variable(self) -> None:
        draw = self._chance.random()
        if draw < 0.5:
            key = self._chance.choice(keys())
            value = {} if key.holds == "section" else self._value(key.path[-1])
            self._environ[key.variable] = self._as_variable(value)
        elif draw < 0.9:
            name = self._chance.choice(tuple(STANDARD))
            self._environ[name] = self._standard(name)
        else:
            self._environ[f"OTEL_GPU_{self._torn('SAMPLING__FAST')}".replace("\0", "")] = "1s"

    def _as_variable(self, value: Any) -> str:
        text = value if isinstance(value, str) else self._flow(value)
        return text.replace("\0", "")

    def _standard(self, name: str) -> str:
        if name.endswith("HEADERS"):
            form = "authorization={}" if not self._is(self._faults) else "authorization {}, ={},"
            return form.replace("{}", self._mark())
        if name.endswith("ENDPOINT"):
            return self._endpoint()
        if self._is(self._faults):
            return str(self._chance.choice(TEXTS)).replace("\0", "")
        return self._chance.choice(STANDARD[name])

    def _flags(self) -> dict[str, object]:
        if not self._is(0.15):
            return {}
        key = self._chance.choice(OWN)
        return {key.name: None if key.holds == "section" else self._value(key.path[-1])}

    def _written(self, tree: Mapping[str, Any], indent: str = "") -> str:
        lines = []
        for name, value in tree.items():
            head = f"{indent}{self._scalar(name)}:"
            if isinstance(value, dict) and value and len(indent) < 8 and self._is(0.6):
                lines.append(f"{head}\n{self._written(value, indent + '  ')}")
            elif isinstance(value, list) and value and self._is(0.5):
                rows = "".join(f"\n{indent}  - {self._flow(one)}" for one in value)
                lines.append(head + rows)
            else:
                lines.append(f"{head} {self._flow(value)}")
        return "\n".join(lines)

    def _flow(self, value: Any) -> str:
        parts: list[str] = []
        self._flow_into(value, parts)
        return "".join(parts)

    def _flow_into(self, value: Any, parts: list[str]) -> None:
        """Write without recursion: some are deeper than Python's stack."""
        waiting: list[Any] = [value]
        while waiting:
            now = waiting.pop()
            if isinstance(now, _Literally):
                parts.append(now.text)
            elif isinstance(now, dict):
                parts.append("{")
                waiting.append(_Literally("}"))
                for place, (name, each) in enumerate(reversed(now.items())):
                    last = _Literally("" if place == 0 else ", ")
                    waiting += [last, each, _Literally(f"{self._quoted(name)}: ")]
            elif isinstance(now, list | tuple):
                parts.append("[")
                waiting.append(_Literally("]"))
                for place, each in enumerate(reversed(now)):
                    waiting += [_Literally("" if place == 0 else ", "), each]
            else:
                parts.append(self._scalar(now))

    def _scalar(self, value: Any) -> str:
        if value is None or isinstance(value, bool):
            return {None: "null", True: "true", False: "false"}[value]
        if isinstance(value, float) and not math.isfinite(value):
            return self._chance.choice((".nan", "nan", "-.inf", ".inf", "inf"))
        if not isinstance(value, str):
            return repr(value)
        stands_bare = BARE.fullmatch(value) and value and "{" not in value
        return value if stands_bare and self._is(0.6) else self._quoted(value)

    def _quoted(self, text: str) -> str:
        if self._is(0.2) and text.isprintable():
            return "'" + text.replace("'", "''") + "'"
        return dumps(text, ensure_ascii=self._is(0.3))

    def _torn(self, text: str) -> str:
        """Damage a text as hands and tools do."""
        for _ in range(self._chance.choice((1, 1, 2, 5))):
            at = self._chance.randrange(len(text) + 1)
            to = at + self._chance.choice((0, 0, 1, 1, 4, 20))
            text = text[:at] + self._chance.choice(TEARS) + text[to:]
        return text

    def _few(self) -> int:
        return self._chance.choice((0, 1, 1, 2, 4))

    def _is(self, odds: float) -> bool:
        return self._chance.random() < odds


@dataclass(frozen=True, slots=True)
class _Literally:
    text: str


TEARS = (
    *("", "", "", " ", "\n", "\t", ":", ": ", "-", "- ", "#", '"', "'", "{", "}", "[", "]", ","),
    *("&a ", "*a", "<<: *a\n", "!", "!x ", "!!int ", "|\n", ">\n", "%", "@", "`", "?", "? ", "\\"),
    *("---\n", "\n...\n", "%YAML 1.1\n", "$", "${", "${A}", "$$", "\0", "\x85", "\u2028", "\ufeff"),
    *("ü", "\u202e", "\U0001f525", "\ud800", "0", "1", "x", "version: 1\n", "    ", "\r"),
)
