"""State machines as SVG: nodes on an ellipse, one curved arrow for every pair. The build makes a file of each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

CHARACTER_PX, LINE_PX, NODE_HEIGHT_PX = 7.4, 15, 34
STYLE = "font-family:var(--md-text-font-family,sans-serif);font-size:13px"
HALO = "paint-order:stroke;stroke:var(--md-default-bg-color,#fff);stroke-width:5px;stroke-linejoin:round"


def state_machine(nodes: Sequence[str], edges: Mapping[tuple[str, str], Sequence[str]], title: str) -> str:
    """`nodes` in order, the first one initial; `edges`: (from, to) -> the names of the actions that go there."""
    nodes = _arranged(nodes, edges)
    width, height = 900, 160 + 110 * max(len(nodes) - 1, 1)
    rx, ry = width / 2 - 130, height / 2 - 60
    half = {n: max(26.0, len(n) * CHARACTER_PX / 2 + 12) for n in nodes}
    centre = {
        n: (
            width / 2 - rx * math.cos(2 * math.pi * i / len(nodes)),
            height / 2 - ry * math.sin(2 * math.pi * i / len(nodes)),
        )
        for i, n in enumerate(nodes)
    }
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}" style="{STYLE}">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 10 5 0 10z" fill="currentColor"/></marker></defs>',
    ]
    labels = []
    for (a, b), names in edges.items():
        path, at = _loop(centre[a], height) if a == b else _arrow(centre[a], centre[b], half[a], half[b])
        out.append(f'<path d="{path}" fill="none" stroke="currentColor" opacity=".6" marker-end="url(#tip)"/>')
        labels.append(_label(names, *at))
    first = nodes[0]
    x, y = centre[first][0] - half[first], centre[first][1]
    out.append(f'<circle cx="{x - 34:.0f}" cy="{y:.0f}" r="5" fill="currentColor"/>')
    out.append(f'<path d="M{x - 28:.0f} {y:.0f} {x - 1:.0f} {y:.0f}" stroke="currentColor" marker-end="url(#tip)"/>')
    for n in nodes:
        x, y = centre[n]
        out.append(
            f'<rect x="{x - half[n]:.0f}" y="{y - NODE_HEIGHT_PX / 2:.0f}" width="{2 * half[n]:.0f}" '
            f'height="{NODE_HEIGHT_PX}" rx="8" fill="var(--md-default-bg-color,#fff)" stroke="currentColor"/>'
            f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" fill="currentColor" font-weight="600">'
            f"{escape(n)}</text>"
        )
    return "\n".join([*out, *labels, "</svg>"])


def _arranged(nodes: Sequence[str], edges: Iterable[tuple[str, str]]) -> list[str]:
    """The nodes round the ellipse so that arrows go to neighbours where they can; the first stays. All orders are tried
    up to eight nodes."""
    pairs = {(a, b) for a, b in edges if a != b}

    def length(order: Sequence[str]) -> int:
        at = {n: i for i, n in enumerate(order)}
        return sum(min((at[a] - at[b]) % len(order), (at[b] - at[a]) % len(order)) ** 2 for a, b in pairs)

    first, *rest = nodes
    if len(rest) > 7:
        return [first, *rest]
    return min(([first, *p] for p in itertools.permutations(rest)), key=length)


def _border(x: float, y: float, half: float, tx: float, ty: float) -> tuple[float, float]:
    """Where the line from a node's centre towards (tx, ty) leaves its box."""
    dx, dy = tx - x, ty - y
    scale = min(half / abs(dx) if dx else math.inf, NODE_HEIGHT_PX / 2 / abs(dy) if dy else math.inf)
    return x + dx * scale, y + dy * scale


def _arrow(
    a: tuple[float, float], b: tuple[float, float], half_a: float, half_b: float
) -> tuple[str, tuple[float, float]]:
    (x1, y1), (x2, y2) = a, b
    length = math.hypot(x2 - x1, y2 - y1)
    bend = min(110.0, length * 0.3)
    cx, cy = (x1 + x2) / 2 + bend * (y2 - y1) / length, (y1 + y2) / 2 - bend * (x2 - x1) / length
    sx, sy = _border(x1, y1, half_a, cx, cy)
    ex, ey = _border(x2, y2, half_b, cx, cy)
    at = (sx / 4 + cx / 2 + ex / 4, sy / 4 + cy / 2 + ey / 4)
    return f"M{sx:.1f} {sy:.1f}Q{cx:.1f} {cy:.1f} {ex:.1f} {ey:.1f}", at


def _loop(a: tuple[float, float], height: float) -> tuple[str, tuple[float, float]]:
    x, y = a
    up = -1 if y < height / 2 else 1
    y += up * NODE_HEIGHT_PX / 2
    return f"M{x - 12:.1f} {y:.1f}c-14 {up * 38} 38 {up * 38} 24 0", (x, y + up * 36)


def _label(names: Sequence[str], x: float, y: float) -> str:
    top = y - (len(names) - 1) * LINE_PX / 2 + 4
    spans = "".join(f'<tspan x="{x:.0f}" y="{top + i * LINE_PX:.0f}">{escape(n)}</tspan>' for i, n in enumerate(names))
    return f'<text text-anchor="middle" fill="currentColor" style="{HALO}">{spans}</text>'
