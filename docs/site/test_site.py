"""The built site and the slides: links, and what a browser without a network shows.

MXOPT_SITE=results/site MXOPT_HANDOUT=results/handout python -m pytest docs/site
"""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from lxml import html

SITE = Path(os.environ.get("MXOPT_SITE", "results/site")).resolve()
HANDOUT = Path(os.environ.get("MXOPT_HANDOUT", "results/handout")).resolve()
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
# All pages but those that are alike, of which one stands for the others.
PATTERNS = ("index", "docs/**/*", "ch08/**/*", "guides/*", "benchmarks/*", "mxopt/methods/engine/*",
            "reference/mxopt/core/plan/*")  # fmt: skip
PAGES = sorted(path for pattern in PATTERNS for path in SITE.glob(f"{pattern}.html"))
LOOKS = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 375, "height": 800}, "color_scheme": "light"},
}


@functools.cache  # the pages of a folder have the same links beside their text
def linked(folder, address):
    """Return the file that an address in a page of a folder leads to, or None."""
    target = (folder / unquote(address)).resolve()
    return target if target.is_file() else None


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere():
    pages = {path: html.parse(path).getroot() for path in SITE.rglob("*.html")}
    anchors = {path: set(page.xpath("//@id")) for path, page in pages.items()}
    wrong = []
    for path, page in pages.items():
        for tag in page.iter("a", "link", "script", "img", "iframe"):
            address = tag.get("href") or tag.get("src") or ""
            parts = urlsplit(address)
            if parts.scheme in ("http", "https") or parts.netloc:
                if tag.tag != "a" and tag.get("rel") != "canonical":
                    wrong.append(f"{path.relative_to(SITE)} loads {address}")
            elif not parts.scheme:
                target = linked(path.parent, parts.path) if parts.path else path
                anchor = unquote(parts.fragment)
                if not target:
                    wrong.append(f"{path.relative_to(SITE)} links to {address}")
                elif anchor and target in anchors and anchor not in anchors[target]:
                    wrong.append(f"{path.relative_to(SITE)}: {address} has no such place")
    assert len(pages) > 100
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def browser():
    if not BROWSER:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update",
                 "--disable-sync"]  # fmt: skip
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=BROWSER, args=arguments)
        yield opened
        opened.close()


def visit(browser, address, **look):
    """Open a page; return it, the errors that it has logged, and what it asked other hosts for."""
    context = browser.new_context(**look)
    page, errors, asked = context.new_page(), [], []
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.wait_for_load_state("load")
    return page, errors, [url for url in asked if not url.startswith(("file:", "data:"))]


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(SITE).as_posix())
def test_pages_render_without_errors(browser, path, look):
    page, errors, asked = visit(browser, path.as_uri(), **LOOKS[look])
    name = path.relative_to(SITE).with_suffix("").as_posix().replace("/", "-")
    page.screenshot(path=SITE.with_name(SITE.name + ".pictures") / f"{name}-{look}.png")
    assert not errors
    assert not asked
    assert page.locator("h1").first.is_visible()
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0, f"{name} is {wide} px wider than the screen"
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, colour.strip("rgb()").split(",")[:3]))
    assert (brightness < 200) == (look == "dark"), colour
    page.context.close()


def test_the_search_finds_a_method_and_a_function(browser):
    for word, wanted in (("bucketing", "Bucketing"), ("time_to_target", "time_to_target")):
        page, errors, asked = visit(browser, f"{(SITE / 'search.html').as_uri()}?q={word}")
        page.wait_for_selector("ul.search li")
        assert wanted in page.locator("ul.search").inner_text()
        assert not errors
        assert not asked
        page.context.close()


@pytest.mark.parametrize("path", sorted(HANDOUT.glob("*.slides.html")), ids=lambda path: path.stem)
def test_slides_turn_without_errors(browser, path):
    page, errors, asked = visit(browser, path.as_uri(), viewport={"width": 1280, "height": 720})
    assert page.locator("h1").first.is_visible()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(1000)
    assert page.evaluate("Reveal.getIndices().h") == 3
    assert page.locator("section.present h2").first.is_visible()
    page.screenshot(path=SITE.with_name(SITE.name + ".pictures") / f"{path.stem}.png")
    assert not errors
    assert not asked
    page.context.close()
