"""A report opened in a real browser, where one is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
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
    done = subprocess.run(
        [
            *(str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *(f"--user-data-dir={path.parent / 'profile'}", f"--window-size={width},1000"),
            *("--enable-logging=stderr", "--v=0", "--virtual-time-budget=5000", "--dump-dom", probed.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in done.stderr
    assert "<title>ERROR" not in done.stdout
    return json.loads(re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.S).group(1))
