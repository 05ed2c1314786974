#!/usr/bin/env python3
"""Draws the pictures of README and docs into docs/assets. With --check it only says whether they are current."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

ASSETS = Path(__file__).resolve().parent / "assets"
INK, LINE, PAPER = "#1f2933", "#52606d", "#ffffff"
WARM, CLAIMED, PLAIN, GONE = "#d7f0e5", "#dbe7ff", "#f3f4f6", "#fde2e1"


class Picture:
    """Boxes, arrows and words on a white ground, so that it reads on a light and on a dark page."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def box(self, x: int, y: int, width: int, height: int, *lines: str, fill: str = PLAIN) -> None:
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" '
                          f'stroke="{LINE}"/>')
        top = y + height / 2 - (len(lines) - 1) * 9 + 5
        for number, line in enumerate(lines):
            self.words(x + width / 2, top + 18 * number, line, bold=number == 0)

    def words(self, x: float, y: float, text: str, bold: bool = False, anchor: str = "middle",
              small: bool = False) -> None:
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{12 if small else 14}"'
                          f'{weight}>{escape(text)}</text>')

    def arrow(self, *points: tuple[int, int], label: str = "", at: tuple[int, int] | None = None,
              anchor: str = "middle") -> None:
        path = "M" + " L".join(f"{x} {y}" for x, y in points)
        self.parts.append(f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.5" '
                          f'marker-end="url(#head)"/>')
        if label:
            (x, y), (to_x, to_y) = points[0], points[-1]
            where = at or ((x + to_x) // 2, (y + to_y) // 2 - 8)
            self.words(*where, label, anchor=anchor, small=True)

    def bar(self, x: int, y: int, width: int, fill: str) -> None:
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="16" fill="{fill}" stroke="{LINE}" '
                          f'stroke-width="0.5"/>')

    def svg(self) -> str:
        head = ('<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
                f'orient="auto-start-reverse"><path d="M0 0 L10 5 L0 10 z" fill="{LINE}"/></marker></defs>')
        return "\n".join((
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" '
            f'font-family="system-ui, sans-serif" fill="{INK}">',
            f"<title>{escape(self.title)}</title>", head,
            f'<rect width="{self.width}" height="{self.height}" rx="12" fill="{PAPER}"/>', *self.parts, "</svg>\n"))


def claim_path() -> Picture:
    picture = Picture(760, 320, "The path of a claim")
    picture.box(20, 20, 170, 56, "SandboxClaim", "created by a program")
    picture.box(20, 244, 170, 56, "SandboxClaim", "Ready, with an address", fill=CLAIMED)
    picture.box(295, 132, 170, 56, "Operator", "plans from its watches")
    picture.box(570, 20, 170, 56, "Sandbox (pod)", "warm, Ready", fill=WARM)
    picture.box(570, 132, 170, 56, "The same sandbox", "owned by the claim", fill=CLAIMED)
    picture.box(570, 244, 170, 56, "New sandbox", "refills the pool", fill=PLAIN)
    picture.arrow((190, 48), (380, 48), (380, 132), label="1  the watch shows it", at=(290, 40))
    picture.arrow((655, 76), (655, 132))
    picture.arrow((465, 150), (570, 150), label="2  patch", at=(517, 142))
    picture.words(517, 168, "the pod", small=True)
    picture.arrow((380, 188), (380, 262), (190, 262), label="3  write the claim's status", at=(285, 254))
    picture.arrow((420, 188), (420, 282), (570, 282), label="4  create", at=(496, 274))
    return picture


def sandbox_states() -> Picture:
    picture = Picture(760, 300, "The states of a sandbox")
    picture.box(20, 40, 130, 52, "warming", "created", fill=PLAIN)
    picture.box(250, 40, 140, 52, "available", "Ready, claimable", fill=WARM)
    picture.box(510, 40, 130, 52, "claimed", "one claim's", fill=CLAIMED)
    picture.box(250, 180, 140, 52, "draining", "preDelete holds it", fill=PLAIN)
    picture.box(510, 180, 130, 52, "deleted", fill=GONE)
    picture.arrow((150, 56), (250, 56), label="Ready", at=(200, 48))
    picture.arrow((250, 78), (150, 78), label="not Ready", at=(200, 96))
    picture.arrow((390, 66), (510, 66), label="claim", at=(450, 58))
    picture.arrow((575, 92), (575, 180), label="the claim ends", at=(584, 140), anchor="start")
    picture.arrow((300, 92), (300, 180), label="leaves", at=(292, 140), anchor="end")
    picture.arrow((340, 180), (340, 92), label="wanted again", at=(348, 140), anchor="start")
    picture.arrow((390, 206), (510, 206), label="let go", at=(450, 198))
    picture.arrow((85, 92), (85, 270), (575, 270), (575, 232),
                  label="failed, finished, overdue, or outdated in a rollout", at=(300, 262))
    return picture


def rollout() -> Picture:
    picture = Picture(760, 250, "A rollout of 4 sandboxes with maxUnavailable 1")
    picture.words(20, 30, "replicas: 4, maxUnavailable: 1, maxSurge: 0", bold=True, anchor="start")
    steps = 140
    for row in range(4):
        y = 52 + 32 * row
        begin = 130 + steps * row
        picture.words(20, y + 13, f"sandbox {row + 1}", anchor="start", small=True)
        picture.bar(100, y, begin - 100, WARM)
        picture.bar(begin, y, 110, GONE)
        picture.bar(begin + 110, y, 740 - begin - 110, CLAIMED)
    for x, fill, label in ((100, WARM, "old template, available"), (310, GONE, "being replaced, warming"),
                           (530, CLAIMED, "new template, available")):
        picture.bar(x, 200, 24, fill)
        picture.words(x + 32, 213, label, anchor="start", small=True)
    picture.words(420, 238, "time", small=True)
    picture.arrow((440, 234), (740, 234))
    return picture


def icon() -> str:
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" role="img"><title>warmpool</title>'
            f'<rect width="64" height="64" rx="14" fill="#0f766e"/>'
            f'<g fill="none" stroke="{PAPER}" stroke-width="4" stroke-linecap="round">'
            '<path d="M12 44 q5 -5 10 0 t10 0 t10 0 t10 0"/><path d="M12 53 q5 -5 10 0 t10 0 t10 0 t10 0"/></g>'
            f'<g fill="{PAPER}"><rect x="14" y="14" width="15" height="15" rx="3"/>'
            '<rect x="35" y="14" width="15" height="15" rx="3" fill="#99f6e4"/></g></svg>\n')


def main() -> None:
    drawn = {"claim-path.svg": claim_path().svg(), "sandbox-states.svg": sandbox_states().svg(),
             "rollout.svg": rollout().svg(), "icon.svg": icon()}
    stale = [name for name, svg in drawn.items()
             if not (ASSETS / name).exists() or (ASSETS / name).read_text() != svg]
    if "--check" in sys.argv:
        if stale:
            sys.exit(f"docs/assets: {', '.join(stale)}: run docs/pictures.py and commit it")
        return
    for name in stale:
        (ASSETS / name).write_text(drawn[name])


if __name__ == "__main__":
    main()
