"""Stack traces of five languages."""

from __future__ import annotations

import pytest

from sennit.hydration.stack_traces import find_frames

PYTHON = """Traceback (most recent call last):
  File "/srv/app/auth.py", line 12, in login
    check(name)
  File "/srv/app/<string>", line 3, in <module>
"""
JAVASCRIPT = """TypeError: x is undefined
    at Session.login (/srv/app/auth.js:12:7)
    at async handle (file:///srv/app/main.js:3:1)
    at /srv/app/anonymous.js:9:2
"""
GO = """goroutine 1 [running]:
example.org/shop/auth.(*Session).Login(0xc000010000, {0x1, 0x2})
\t/srv/app/auth.go:12 +0x1d
main.main.func1()
\t/srv/app/main.go:3 +0x25
"""
JAVA = """java.lang.IllegalStateException: no
\tat com.example.shop.Session.login(Session.java:12)
\tat java.base/java.lang.Thread.run(Thread.java:833)
"""
RUST = """thread 'main' panicked at src/auth.rs:12:7:
stack backtrace:
   0: rust_begin_unwind
             at /rustc/1/library/std/src/panicking.rs:652:5
   1: shop::auth::Session::login
             at ./src/auth.rs:12:7
   2: shop::main::{{closure}}
             at ./src/main.rs:3
"""


@pytest.mark.parametrize(
    ("trace", "wanted"),
    [
        (PYTHON, [("/srv/app/auth.py", 12, "login"), ("/srv/app/<string>", 3, "")]),
        (
            JAVASCRIPT,
            [
                ("/srv/app/auth.js", 12, "Session.login"),
                ("/srv/app/main.js", 3, "handle"),
                ("/srv/app/anonymous.js", 9, ""),
            ],
        ),
        (GO, [("/srv/app/auth.go", 12, "Session.Login"), ("/srv/app/main.go", 3, "main.main")]),
        (
            JAVA,
            [
                ("com/example/shop/Session.java", 12, "Session.login"),
                ("java/lang/Thread.java", 833, "Thread.run"),
            ],
        ),
        (
            RUST,
            [
                ("/rustc/1/library/std/src/panicking.rs", 652, "rust_begin_unwind"),
                ("./src/auth.rs", 12, "Session.login"),
                ("./src/main.rs", 3, "shop.main"),
            ],
        ),
    ],
    ids=["python", "javascript", "go", "java", "rust"],
)
def test_every_frame_has_its_file_line_and_function(trace: str, wanted: list[tuple[str, int, str]]) -> None:
    found, _ = find_frames(f"it fails:\n{trace}why?")
    assert [(one.path, one.lines and one.lines[0], one.function) for one in found] == wanted


def test_frames_are_blanked_out_of_the_rest_of_the_query() -> None:
    found, rest = find_frames(f"look at util.py\n{PYTHON}")
    assert len(found) == 2
    assert "auth.py" not in rest
    assert rest.startswith("look at util.py")
    assert len(rest) == len(f"look at util.py\n{PYTHON}")
