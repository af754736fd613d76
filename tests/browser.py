"""Reports and pages opened in a real browser, where one is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

PROBE = """
<script>
window.addEventListener("error", e => { document.title = "ERROR " + e.message; });
window.addEventListener("load", () => {
  const curves = () => document.querySelectorAll("polyline.curve").length;
  const out = {before: curves(), charts: document.querySelectorAll("figure svg").length};
  const buttons = [...document.querySelectorAll("nav button")];
  const button = buttons.find(b => b.textContent === "NES") || buttons[0];
  button.click();
  out.hidden = curves();
  out.left = [...new Set([...document.querySelectorAll("polyline.curve")].map(p => p.dataset.method))].sort().join();
  out.pressed = button.getAttribute("aria-pressed");
  button.click();
  out.shown = curves();
  const svg = document.querySelector("figure svg"), box = svg.getBoundingClientRect();
  svg.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width / 2, clientY: box.top + 20}));
  out.read = document.querySelector("figure .read").innerText;
  out.wide = document.documentElement.scrollWidth <= document.documentElement.clientWidth;
  const pre = document.createElement("pre");
  pre.id = "probe";
  pre.textContent = JSON.stringify(out);
  document.body.append(pre);
});
</script>
"""


def probe(path: Path, width: int) -> dict:
    """Open a report in the browser and look at what it shows."""
    probed = path.with_name("probed.html")
    probed.write_text(path.read_text().replace("</head>", PROBE + "</head>"))
    return _answer(probed, width)


FRAMES = """
<!doctype html><script>
const pages = %s, found = {}, width = %d;
const scrolls = e => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);
function cut(body) {  // what ends right of the page, or of a box that cannot be scrolled
  const view = body.ownerDocument.documentElement, out = [];
  if (view.scrollWidth > view.clientWidth) out.push("the page: " + view.scrollWidth);
  for (const e of body.querySelectorAll("article :is(pre, table, img, math, dt, svg), main > figure")) {
    const box = e.getBoundingClientRect();
    if (!box.width) continue;
    let up = e;
    while (up !== body && !scrolls(up)) up = up.parentElement;
    const named = e.tagName + " " + e.textContent.trim().slice(0, 40);
    if (up === body && box.right > width + 1) out.push(named + ": " + Math.round(box.right));
    if (e.tagName === "PRE" && !scrolls(e) && e.scrollWidth > e.clientWidth + 1) out.push(named);
  }
  for (const figure of body.querySelectorAll("figure:has(img.narrow)")) {  // of its forms one is shown
    const shown = [...figure.querySelectorAll("img")].filter(e => e.getBoundingClientRect().width).length;
    if (shown !== 1) out.push("a figure shows " + shown + " of its forms");
  }
  return out;
}
async function look(page) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width: ${width}px; height: 800px; border: 0`;
  frame.src = page;
  document.body.append(frame);
  await new Promise(done => { frame.onload = done; });
  found[page] = cut(frame.contentDocument.body);
  frame.remove();
}
window.addEventListener("load", async () => {
  for (const page of pages) await look(page);
  const pre = document.createElement("pre");
  pre.id = "probe";
  pre.textContent = JSON.stringify(found);
  document.body.append(pre);
});
</script><body></body>
"""


def cut_off(site: Path, width: int, dark: bool = False) -> dict[str, list[str]]:
    """By page of a site: what is cut off at the right where the page is `width` pixels wide, and doubled figures."""
    own = [
        path for path in site.rglob("*.html") if not path.name.endswith("-report.html")
    ]  # reports have their own tests
    pages = sorted(path.relative_to(site).as_posix() for path in own if "_modules" not in path.parts)
    frames = site / "frames.html"
    frames.write_text(FRAMES % (json.dumps(pages), width))
    found = _answer(frames, max(width, 500), *["--blink-settings=preferredColorScheme=0"] * dark)
    frames.unlink()
    return found


def _answer(page: Path, width: int, *flags: str) -> dict:
    """What a page writes, as JSON, into an element with the id `probe`."""
    with tempfile.TemporaryDirectory() as profile:
        done = _run(page, width, f"--user-data-dir={profile}", *flags)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert console == []
    assert "<title>ERROR" not in done.stdout
    return json.loads(unescape(re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.S).group(1)))


def _run(page: Path, width: int, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--allow-file-access-from-files", f"--window-size={width},1000", *flags),
            *("--enable-logging=stderr", "--v=0", "--virtual-time-budget=60000", "--dump-dom", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
