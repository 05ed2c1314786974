#!/usr/bin/env python3
"""session.py TRANSCRIPT PICTURE: draws a real session as an SVG, from what `make session` recorded."""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path

# Words that only the blocks have that the picture shows, in its order.
SHOWN = ("kind: SandboxClaim", "updatedAvailable", "warmpool -n first why")
LINE, CHARACTER, MARGIN, COLUMNS = 18, 7.8, 16, 104
GROUND, TEXT, PROMPT, COMMAND = "#111827", "#d1d5db", "#5eead4", "#f9fafb"


def wrapped(line: str) -> list[str]:
    """A line in parts that fit, broken between words."""
    parts: list[str] = []
    while len(line) > COLUMNS:
        end = line.rfind(" ", 0, COLUMNS)
        end = end if end > COLUMNS // 2 else COLUMNS
        parts.append(line[:end])
        line = line[end:].lstrip()
    return [*parts, line]


def lines(steps: list[dict]) -> list[tuple[str, str]]:
    """The color and the text of each line."""
    drawn: list[tuple[str, str]] = []
    for words in SHOWN:
        step = next(step for step in steps if words in step["commands"])
        for number, line in enumerate(step["commands"].rstrip().splitlines()):
            prompt = "$ " if number == 0 or line.startswith("kubectl ") else "  "
            drawn += [(COMMAND, part) for part in wrapped(prompt + line)]
        drawn += [(TEXT, part) for line in step["output"].rstrip().splitlines() for part in wrapped(line)]
        drawn.append((TEXT, ""))
    return drawn[:-1]


def main() -> None:
    picture = Path(sys.argv[2])
    drawn = lines(json.loads(Path(sys.argv[1]).read_text()))
    width, height = int(COLUMNS * CHARACTER) + 2 * MARGIN, len(drawn) * LINE + 2 * MARGIN
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-size="13" '
             'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace">',
             "<title>A session with warmpool: a claim, a rollout, and why</title>",
             f'<rect width="{width}" height="{height}" rx="10" fill="{GROUND}"/>']
    for number, (color, text) in enumerate(drawn):
        y = MARGIN + LINE * number + 13
        mark = ""
        if color == COMMAND and text.startswith("$ "):
            mark, text = f'<tspan fill="{PROMPT}">$ </tspan>', text[2:]
        parts.append(f'<text x="{MARGIN}" y="{y}" fill="{color}" xml:space="preserve">{mark}{escape(text)}</text>')
    picture.write_text("\n".join((*parts, "</svg>\n")))
    print(f"{picture}: {len(drawn)} lines")


if __name__ == "__main__":
    main()
