"""How fast the web page paints: the first result after the answer, and a thousand candidates.

python -m benchmarks.page
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, sync_playwright
from scripts.web_screens import open_browser, run_page

import sennit
from sennit.apps.http.assets import ASSETS

ROUNDS: Final = 15
RECORDS: Final = 3000

OBSERVE: Final = """() => {
  window.painted = new Promise((resolve) => new MutationObserver((_, observer) => {
    if (!document.querySelector('.results article')) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
  }).observe(document.querySelector('.results'), { childList: true }));
}"""
WAIT: Final = """async () => {
  const at = await window.painted;
  const asked = performance.getEntriesByType('resource').filter((one) => one.name.endsWith('/v1/search'));
  return at - asked.at(-1).responseEnd;
}"""
DRAW: Final = """() => {
  const figure = document.querySelector('.flow');
  const began = performance.now();
  figure.redraw();
  return performance.now() - began;
}"""
POINT: Final = """() => {
  const box = document.querySelector('.flow-box');
  const bounds = box.getBoundingClientRect();
  const began = performance.now();
  for (let at = 0; at < 100; at++) {
    box.dispatchEvent(new PointerEvent('pointermove', {
      clientX: bounds.left + bounds.width * (0.2 + at / 200), clientY: bounds.top + bounds.height * (0.2 + at / 200) }));
  }
  return (performance.now() - began) / 100;
}"""


FRAMES: Final = """async () => {
  const box = document.querySelector('.flow-box');
  const bounds = box.getBoundingClientRect();
  const gaps = [];
  let last = await new Promise(requestAnimationFrame);
  for (let at = 0; at < 120; at++) {
    box.dispatchEvent(new PointerEvent('pointermove', {
      clientX: bounds.left + bounds.width * (0.2 + at / 240), clientY: bounds.top + bounds.height * (0.2 + at / 240) }));
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
  }
  return gaps;
}"""
FRAME_MILLISECONDS: Final = 1000 / 60


def measure(page: Page, query: str) -> float:
    """Milliseconds from the end of the answer until the first result is painted."""
    page.evaluate("performance.clearResourceTimings()")
    page.locator("input[type=search]").fill("")
    page.locator("article").first.wait_for(state="detached")
    page.evaluate(OBSERVE)
    page.locator("input[type=search]").fill(query)
    return float(page.evaluate(WAIT))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / ".sennit"
        with sennit.open(path, privacy__open=True) as db:
            db.add(
                [
                    {
                        "id": f"r{n}",
                        "title": f"Note {n}",
                        "text": f"vineyard note {n} about barrel {n % 97} " * 8,
                    }
                    for n in range(RECORDS)
                ]
            )
        with run_page(path, "--owner") as address:
            browser = open_browser(playwright)
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(address)
            page.locator("input[type=search]").wait_for()
            times = [measure(page, f"vineyard barrel {n}") for n in range(ROUNDS)]
            print(f"first result painted after the answer: median {statistics.median(times):.0f} ms, "
                  f"longest {max(times):.0f} ms")  # fmt: skip
            page.goto(f"{address.partition('#')[0]}#/search?q=vineyard&recipe=rrf&limit=334")
            page.locator(".flow[data-drawn]").wait_for()
            count = int(page.locator(".flow").get_attribute("data-drawn") or 0)
            drawn = [float(page.evaluate(DRAW)) for _ in range(ROUNDS)]
            print(f"{count} candidates drawn: median {statistics.median(drawn):.1f} ms; "
                  f"pointing at one: {float(page.evaluate(POINT)):.2f} ms")  # fmt: skip
            gaps = page.evaluate(FRAMES)
            late = sum(gap > 2.5 * FRAME_MILLISECONDS for gap in gaps)
            print(f"pointing at a line in each of {len(gaps)} frames: median {statistics.median(gaps):.1f} ms a frame, "
                  f"longest {max(gaps):.0f} ms, {late} frames later than two")  # fmt: skip
            size = sum(len(asset.compressed) for asset in ASSETS.values())
            print(f"all files of the page, compressed: {size / 1000:.0f} kB")
            browser.close()


if __name__ == "__main__":
    main()
