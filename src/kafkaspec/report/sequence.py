"""A run as a sequence diagram: a lane for everyone who acts or is acted upon, an arrow or a box for every step. And a
judged history: a lane for the judge and one for whom it asks, an arrow for every call and one for its answer.

The drawing is SVG that stands in a page as it is: no script, no font, no colour that a dark page would swallow (text is
the page's own colour; the others are the variables --good, --bad, --warn and --accent, each with a default).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from kafkaspec.contract.history import answer_text, call_text
from kafkaspec.language.model import LoadedModel
from kafkaspec.language.trace import Trace, TraceStep, Value
from kafkaspec.report.section import HEADINGS, Conversation, Mood, call, flat, value_text, words

CHARACTER_PX, MONO_PX = 6.9, 6.7
"""The width of a character at 12 px, proportional and monospaced: what text needs is reckoned, not measured."""
GUTTER_PX, MARGIN_PX, LANE_MIN_PX, LANE_MAX_PX = 54, 14, 120, 260
HEAD_PX, ARROW_PX, NOTE_PX, GAP_PX, BOX_PX = 52, 30, 17, 16, 24
MAX_NOTES, MAX_NOTE = 4, 38
COLOURS: Mapping[Mood, str] = {
    "good": "var(--good,#1a7f4b)",
    "bad": "var(--bad,#cf2f3a)",
    "unknown": "var(--warn,#a86500)",
    "plain": "var(--accent,#2f6fde)",
    "dim": "currentColor",
}
ELEMENT = re.compile(r"[a-z]\d+")
"""How an element of a sort is shown, such as "p0"."""


@dataclass(frozen=True)
class Scene:
    """One step: who acts, upon whom, and what is noted on which lane. Lanes by their keys: an element, or a `who`."""

    actor: str
    targets: tuple[str, ...]
    notes: Mapping[str, tuple[str, ...]]


def sequence_svg(trace: Trace, model: LoadedModel | None = None) -> str:
    """The diagram. With the model at hand it is known which elements are whose; without, the run's own steps tell."""
    lanes, scenes = staged(trace, model)
    widths = _widths(trace, lanes, scenes)
    centres: dict[str, float] = {}
    x = float(GUTTER_PX)
    for key in lanes:
        centres[key] = x + widths[key] / 2
        x += widths[key]
    about = _about(trace)
    width, y = max(x, GUTTER_PX + len(about) * CHARACTER_PX) + MARGIN_PX, float(HEAD_PX)
    tops, body = [], []
    for i, scene in enumerate(scenes, 1):
        tops.append(y + ARROW_PX / 2)
        drawn, height = _step(trace, i, scene, centres, widths, y)
        body.append(drawn)
        y += height
    end = _end(HEADINGS[trace.kind][1], about, width, y) if about else ""
    height = y + (46 if end else 10)
    label = escape(f"{trace.model}: {words(trace.claim)}, {len(scenes)} steps")
    out = [
        _svg(width, height, label),
        *_lanes(lanes, centres, y),
        *(_loop(trace, tops) if trace.loop is not None and tops else ()),
        *body,
        end,
        "</svg>",
    ]
    return "\n".join(s for s in out if s)


# ---- who and what ----------------------------------------------------------------------------------------------------
def staged(trace: Trace, model: LoadedModel | None) -> tuple[dict[str, str], list[Scene]]:
    """The lanes (key -> label), those who act first, and the scene of each step after the first state."""
    steps = trace.steps[1:]
    many = _many(_deeds(steps, model))
    actors: dict[str, str] = {}
    others: dict[str, str] = {}
    cast = []
    for step in steps:
        elements = _elements(step, model)
        key = label = step.who or trace.model
        if elements and (step.who, elements[0][0]) in many:
            key = elements[0][1]
            label = f"{step.who} {key}".strip()
        actors.setdefault(key, label)
        targets = tuple(e for e in dict.fromkeys(e for _, e in elements) if e != key)
        others |= {e: f"{sort.lower()} {e}".strip() if len(sort) > 1 else e for sort, e in elements if e != key}
        cast.append((key, targets))
    lanes = actors | {e: label for e, label in sorted(others.items(), key=_natural) if e not in actors}
    scenes = []
    for i, (key, targets) in enumerate(cast, 1):
        notes: dict[str, list[str]] = {}
        for path, (_, after) in trace.changed(i).items():
            where, text = _note(path, after, lanes, key)
            notes.setdefault(where, []).append(text)
        scenes.append(Scene(key, targets, {k: _few(v) for k, v in notes.items()}))
    return lanes, scenes


Deed = tuple[str, tuple[str, ...]]
"""A `who`, and the sorts of what it names in an action, in order."""


def _deeds(steps: Sequence[TraceStep], model: LoadedModel | None) -> list[Deed]:
    if model is None:
        return [(s.who, tuple(sort for sort, _ in _elements(s, None))) for s in steps]
    return [(a.who, tuple(p.t.name for p in a.params if p.t.kind == "sort")) for a in model.actions]


def _many(deeds: Sequence[Deed]) -> set[tuple[str, str]]:
    """Each `who` that is many, with the sort whose elements its members are ("cleaner thread", Thread): they come first
    in what they do, to others or always, and nobody of another sort does anything to them."""
    acted_upon = {sort for _, sorts in deeds for sort in sorts[1:] if sort != sorts[0]}
    out = set()
    for who, sort in {(who, sorts[0]) for who, sorts in deeds if sorts}:
        mine = [sorts for w, sorts in deeds if w == who]
        to_others = any(len(sorts) > 1 and sorts[0] == sort for sorts in mine)
        if sort not in acted_upon and (to_others or all(sorts[:1] == (sort,) for sorts in mine)):
            out.add((who, sort))
    return out


def _elements(step: TraceStep, model: LoadedModel | None) -> list[tuple[str, str]]:
    """The arguments that are elements of sorts, with the sort's name; without a model, with its first letter."""
    action = next((a for a in model.actions if a.name == step.action), None) if model is not None else None
    if action is not None:
        sorts = {action.parameter(p): p.t.name for p in action.params if p.t.kind == "sort"}
        return [(sorts[n], str(v)) for n, v in step.arguments.items() if n in sorts]
    return [(v[0], v) for v in step.arguments.values() if isinstance(v, str) and ELEMENT.fullmatch(v)]


def _natural(lane: tuple[str, str]) -> tuple[str, int]:
    return lane[0][0], int(lane[0][1:])


def _note(path: str, after: Value, lanes: Mapping[str, str], actor: str) -> tuple[str, str]:
    """The lane that a change belongs to, and the change in few words."""
    keys = re.findall(r"\[([^\]]*)\]", path)
    where = next((k for k in keys if k in lanes), actor)
    text = f"{path.replace(f'[{where}]', '', 1)} = {value_text(after)}"
    return where, _short(text)


def _few(notes: Sequence[str]) -> tuple[str, ...]:
    if len(notes) <= MAX_NOTES:
        return tuple(notes)
    return (*notes[: MAX_NOTES - 1], f"and {len(notes) - MAX_NOTES + 1} more")


# ---- drawing ---------------------------------------------------------------------------------------------------------
def _widths(trace: Trace, lanes: Mapping[str, str], scenes: Sequence[Scene]) -> dict[str, float]:
    need = {k: len(label) * CHARACTER_PX + 34 for k, label in lanes.items()}
    for step, scene in zip(trace.steps[1:], scenes, strict=True):
        for key, notes in scene.notes.items():
            need[key] = max(need[key], max(map(len, notes)) * MONO_PX + 34)
        if not scene.targets:
            need[scene.actor] = max(need[scene.actor], _label_px(step) + 40)
    out = {k: min(max(n, LANE_MIN_PX), LANE_MAX_PX) for k, n in need.items()}
    # An arrow between neighbours has its label between their lines.
    order = list(lanes)
    for step, scene in zip(trace.steps[1:], scenes, strict=True):
        places = sorted(order.index(k) for k in (scene.actor, *scene.targets))
        if len(places) > 1:
            span = (
                sum(out[k] for k in order[places[0] : places[-1] + 1])
                - (out[order[places[0]]] + out[order[places[-1]]]) / 2
            )
            short = _label_px(step) + 26 - span
            for k in (order[places[0]], order[places[-1]]) if short > 0 else ():
                out[k] += short
    return out


def _label_px(step: TraceStep) -> float:
    return (len(call(step.action, step.arguments)) + len(" ".join(step.clauses)) + 2) * CHARACTER_PX


def _svg(width: float, height: float, label: str) -> str:
    return (
        f'<svg class="sequence" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{label}" fill="currentColor" '
        f'font-family="system-ui,sans-serif" font-size="12"><title>{label}</title>'
    )


def _lanes(lanes: Mapping[str, str], centres: Mapping[str, float], bottom: float) -> list[str]:
    out = []
    for key, label in lanes.items():
        x, w = centres[key], len(label) * CHARACTER_PX + 22
        out.append(
            f'<path d="M{x:.1f} 36V{bottom:.1f}" stroke="currentColor" opacity=".22" stroke-dasharray="3 4"/>'
            f'<rect x="{x - w / 2:.1f}" y="8" width="{w:.1f}" height="28" rx="7" fill="currentColor" opacity=".07"/>'
            f'<rect x="{x - w / 2:.1f}" y="8" width="{w:.1f}" height="28" rx="7" fill="none" stroke="currentColor" '
            f'opacity=".35"/><text x="{x:.1f}" y="26.5" text-anchor="middle" font-weight="600">{escape(label)}</text>'
        )
    return out


def _step(
    trace: Trace, i: int, scene: Scene, centres: Mapping[str, float], widths: Mapping[str, float], y: float
) -> tuple[str, float]:
    """The drawing of one step at y, and its height."""
    step = trace.steps[i]
    mood = HEADINGS[trace.kind][1]
    shown: Mood = mood if i == len(trace.steps) - 1 and mood != "plain" and trace.loop is None else "plain"
    colour = COLOURS[shown]
    line = y + ARROW_PX - 6
    out = [_numbered(i, colour, y)]
    name = f'<tspan font-weight="600" fill="{colour}">{escape(call(step.action, step.arguments))}</tspan>'
    ids = f'<tspan opacity=".6" font-size="10.5">  {escape(" ".join(step.clauses))}</tspan>' if step.clauses else ""
    halo = 'style="paint-order:stroke;stroke:var(--paper,transparent);stroke-width:4px"'
    x = centres[scene.actor]
    if scene.targets:
        ends = [centres[t] for t in scene.targets]
        middle = (min(x, *ends) + max(x, *ends)) / 2
        out.append(f'<circle cx="{x:.1f}" cy="{line:.1f}" r="3.5" fill="{colour}"/>')
        for end in ends:
            tip = -7 if end > x else 7
            out.append(
                f'<path d="M{x:.1f} {line:.1f}H{end + tip / 2:.1f}" stroke="{colour}" stroke-width="1.6"/>'
                f'<path d="M{end:.1f} {line:.1f}l{tip} -4.5v9z" fill="{colour}"/>'
            )
        out.append(f'<text x="{middle:.1f}" y="{line - 8:.1f}" text-anchor="middle" {halo}>{name}{ids}</text>')
        y = line + 6
    else:
        w = _label_px(step) + 20
        out.append(
            f'<rect x="{x - w / 2:.1f}" y="{y + 3:.1f}" width="{w:.1f}" height="{BOX_PX}" rx="12" '
            f'fill="var(--paper,transparent)"/>'
            f'<rect x="{x - w / 2:.1f}" y="{y + 3:.1f}" width="{w:.1f}" height="{BOX_PX}" rx="12" fill="{colour}" '
            f'fill-opacity=".10" stroke="{colour}" stroke-width="1.2"/>'
            f'<text x="{x:.1f}" y="{y + 19.5:.1f}" text-anchor="middle">{name}{ids}</text>'
        )
        y = line + 6
    deepest = max(map(len, scene.notes.values()), default=0)
    out += [_noted(centres[key], widths[key], notes, y) for key, notes in scene.notes.items()]
    out.append("</g>")
    return "".join(out), ARROW_PX + (deepest * NOTE_PX + 5 if deepest else 0) + GAP_PX


def _numbered(i: int, colour: str, y: float) -> str:
    return (
        f'<g class="step" data-step="{i}">'
        f'<circle cx="{GUTTER_PX - 22}" cy="{y + ARROW_PX / 2:.1f}" r="11" fill="{colour}" opacity=".15"/>'
        f'<text x="{GUTTER_PX - 22}" y="{y + ARROW_PX / 2 + 4:.1f}" text-anchor="middle" font-size="11" '
        f'font-weight="600" fill="{colour}">{i}</text>'
    )


def _noted(centre: float, width: float, notes: Sequence[str], y: float) -> str:
    """Notes below each other on a lane."""
    w = min(max(map(len, notes)) * MONO_PX + 16, width - 8)
    left = centre - w / 2
    out = [
        f'<rect x="{left:.1f}" y="{y:.1f}" width="{w:.1f}" height="{len(notes) * NOTE_PX + 5}" rx="4" {look}/>'
        for look in ('fill="var(--paper,transparent)"', 'fill="currentColor" opacity=".07"')
    ]
    out += [
        f'<text x="{left + 8:.1f}" y="{y + 14.5 + n * NOTE_PX:.1f}" font-size="11" opacity=".85" '
        f'font-family="ui-monospace,monospace">{escape(text)}</text>'
        for n, text in enumerate(notes)
    ]
    return "".join(out)


def _loop(trace: Trace, tops: Sequence[float]) -> list[str]:
    """The way back of a lasso, in the gutter."""
    assert trace.loop is not None
    bottom, top, colour = tops[-1], tops[trace.loop] - 22 if trace.loop < len(tops) else tops[-1] - 22, COLOURS["bad"]
    return [
        f'<path d="M{GUTTER_PX - 36} {bottom:.1f}H9V{top:.1f}H{GUTTER_PX - 14}" fill="none" stroke="{colour}" '
        f'stroke-width="1.6"/><path d="M{GUTTER_PX - 8} {top:.1f}l-7 -4.5v9z" fill="{colour}"/>'
    ]


def _about(trace: Trace) -> str:
    """What the run shows, for its last line."""
    _, mood, at_end = HEADINGS[trace.kind]
    mark = {"good": "✓", "bad": "✗"}.get(mood, "?")
    return f"{mark} {at_end if trace.kind == 'deadlock' else f'{words(trace.claim)} {at_end}'}" if at_end else ""


def _end(mood: Mood, about: str, width: float, y: float) -> str:
    colour = COLOURS[mood]
    return (
        f'<rect x="{MARGIN_PX}" y="{y + 4:.1f}" width="{width - 2 * MARGIN_PX:.1f}" height="30" rx="7" '
        f'fill="{colour}" opacity=".13"/><text x="{width / 2:.1f}" y="{y + 23.5:.1f}" text-anchor="middle" '
        f'font-weight="600" fill="{colour}">{escape(about)}</text>'
    )


# ---- conversations ---------------------------------------------------------------------------------------------------
MAX_SAID = 88
"""Characters of a call or of an answer on its arrow."""


def conversation_svg(c: Conversation) -> str:
    """Two lanes: the judge, and whom it asks. Each call is an arrow there, its answer one back, and what it changed in
    the state that is shown is noted where it changed; the last answer is the wrong one."""
    records = c.history.records
    said = [(_clipped(call_text(r["op"], r.get("args", {}))), _clipped(answer_text(r) or "no answer")) for r in records]
    notes: list[tuple[str, ...]] = []
    state: Mapping[str, Value] = {}
    for r in records:
        shown = r.get("state")
        now = state if shown is None else flat({"state": shown} if not isinstance(shown, Mapping) else shown)
        notes.append(
            _few([_short(f"{k} = {value_text(v)}") for k, v in now.items() if k not in state or state[k] != v])
        )
        state = now
    between = max(LANE_MAX_PX, *(max(map(len, texts)) * CHARACTER_PX + 40 for texts in said))
    noted = max((len(n) for texts in notes for n in texts), default=0) * MONO_PX + 34
    left = LANE_MIN_PX
    right = min(max(noted, len(c.who) * CHARACTER_PX + 34, LANE_MIN_PX), 2 * LANE_MAX_PX)
    judge, target = GUTTER_PX + left / 2, GUTTER_PX + left / 2 + between
    about = _clipped(f"✗ {c.end}")
    width = max(target + right / 2, GUTTER_PX + len(about) * CHARACTER_PX) + MARGIN_PX
    y, body = float(HEAD_PX), []
    for i, (texts, changed) in enumerate(zip(said, notes, strict=True)):
        wrong = i == len(said) - 1
        drawn = [_numbered(i, COLOURS["bad" if wrong else "plain"], y)]
        drawn.append(_arrow(judge, target, y + ARROW_PX - 6, texts[0], "plain"))
        y += ARROW_PX
        drawn.append(_arrow(target, judge, y + ARROW_PX - 6, texts[1], "bad" if wrong else "dim"))
        y += ARROW_PX
        if changed:
            drawn.append(_noted(target, right, changed, y))
            y += len(changed) * NOTE_PX + 5
        y += GAP_PX
        body.append("".join(drawn) + "</g>")
    label = escape(f"{c.who}: {len(records) - 1} calls, the last answer is wrong")
    lanes = _lanes({"judge": "judge", "target": c.who}, {"judge": judge, "target": target}, y)
    return "\n".join([_svg(width, y + 46, label), *lanes, *body, _end("bad", about, width, y), "</svg>"])


def _arrow(start: float, end: float, y: float, text: str, mood: Mood) -> str:
    """An arrow with its label; an answer's is dashed."""
    colour, tip = COLOURS[mood], -7 if end > start else 7
    dashes = "" if end > start else ' stroke-dasharray="5 4"'
    weight = ' font-weight="600"' if mood != "dim" else ""
    return (
        f'<path d="M{start:.1f} {y:.1f}H{end + tip / 2:.1f}" stroke="{colour}" stroke-width="1.6"{dashes}/>'
        f'<path d="M{end:.1f} {y:.1f}l{tip} -4.5v9z" fill="{colour}"/>'
        f'<text x="{(start + end) / 2:.1f}" y="{y - 7:.1f}" text-anchor="middle" fill="{colour}"{weight} '
        f'style="paint-order:stroke;stroke:var(--paper,transparent);stroke-width:4px">{escape(text)}</text>'
    )


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_SAID else text[: MAX_SAID - 1] + "…"


def _short(text: str) -> str:
    return text if len(text) <= MAX_NOTE else text[: MAX_NOTE - 1] + "…"
