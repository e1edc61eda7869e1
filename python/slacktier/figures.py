"""Figures of reports, drawn by matplotlib as SVG elements that lie inside an HTML page.

Black is drawn as currentColor, so that a figure is readable on light and dark paper; text stays text. A figure is an object:
title, x_label, y_label, x_log, y_from_zero, and series of {label, style, x, y, lo, hi}. Styles: line, marks, both (line with marks), level
(a horizontal line at y[0]), bars (x are names), spans (horizontal bars from lo to hi at the row named by x).
"""

import io
import math
import re
import warnings

COLOURS = ["#2f7fb8", "#d1495b", "#2e9e63", "#9467c4", "#c98a1b", "#7a828a", "#17a2b0", "#b5588f"]


def _libraries():
    from slacktier.errors import EnvironmentLacks
    try:
        with warnings.catch_warnings():  # of several installations beside each other; two dimensions are all that is drawn
            warnings.simplefilter("ignore", UserWarning)
            import matplotlib
            matplotlib.use("svg")
            import matplotlib.figure
    except ImportError as error:
        raise EnvironmentLacks(f"matplotlib is not there ({error}): pip install matplotlib, or apt-get install python3-matplotlib") from None
    return matplotlib


def _bars(axes, series):
    names = list(dict.fromkeys(name for one in series if one["style"] in ("bars", "ticks") for name in one["x"]))
    place = {name: row for row, name in enumerate(names)}
    bars = [one for one in series if one["style"] == "bars"]
    height = 0.8 / max(1, len(bars))
    for i, one in enumerate(bars):
        rows = [place[name] + (i - (len(bars) - 1) / 2) * height for name in one["x"]]
        lows = one.get("lo") or None
        errors = None
        if lows:
            errors = [[y - (y if lo is None else lo) for y, lo in zip(one["y"], lows)],
                      [(y if hi is None else hi) - y for y, hi in zip(one["y"], one["hi"])]]
        axes.barh(rows, one["y"], height=0.9 * height, color=one["colour"], label=one["label"], xerr=errors, ecolor="#000000")
    for one in series:
        if one["style"] == "ticks":  # a mark on the row, such as the window beside a read time
            axes.plot(one["y"], [place[name] for name in one["x"]], linestyle="none", marker="|", markersize=18, markeredgewidth=2.5,
                      color=one["colour"], label=one["label"])
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()


def _spans(axes, series):
    names = list(dict.fromkeys(name for one in series if one["style"] == "spans" for name in one["x"]))
    place = {name: row for row, name in enumerate(names)}
    for one in series:
        if one["style"] == "spans":
            widths = [hi - lo for lo, hi in zip(one["lo"], one["hi"])]
            axes.barh([place[name] for name in one["x"]], widths, left=one["lo"], height=0.6, color=one["colour"], label=one["label"])
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()


def _curves(axes, series):
    for one in series:
        if one["style"] == "level":
            axes.axhline(one["y"][0], color=one["colour"], linestyle="--", linewidth=1.4, label=one["label"])
            continue
        style = {"line": ("-", ""), "marks": ("", "o"), "both": ("-", "o")}[one["style"]]
        errors = None
        if one.get("lo"):
            errors = [[max(0, y - (y if lo is None else lo)) for y, lo in zip(one["y"], one["lo"])],
                      [max(0, (y if hi is None else hi) - y) for y, hi in zip(one["y"], one["hi"])]]
        axes.errorbar(one["x"], one["y"], yerr=errors, linestyle=style[0] or "none", marker=style[1] or None, markersize=4, capsize=2,
                      color=one["colour"], label=one["label"])


def _draw(matplotlib, figure):
    series = figure["series"]
    for i, one in enumerate(series):
        one["colour"] = COLOURS[i % len(COLOURS)]
    styles = {one["style"] for one in series}
    rows = len({name for one in series if one["style"] in ("bars", "spans", "ticks") for name in one["x"]})
    canvas = matplotlib.figure.Figure(figsize=(5.4, 0.38 * rows + 1.6 if rows else 3.4), layout="constrained")
    axes = canvas.add_subplot()
    if styles & {"bars", "ticks"}:
        _bars(axes, series)
    elif "spans" in styles:
        _spans(axes, series)
    else:
        _curves(axes, series)
    if figure.get("x_log"):
        axes.set_xscale("symlog", linthresh=figure["x_log"], linscale=0.4)
        longest = max(max(one["x"]) for one in series)
        least = round(math.log10(figure["x_log"]))
        axes.set_xticks([0] + [10 ** power for power in range(least, max(least + 1, math.ceil(math.log10(max(longest, 1)) + 1e-9)) + 1)])
    if figure.get("y_from_zero"):
        axes.set_ylim(bottom=0)
    axes.set_xlabel(figure["x_label"])
    axes.set_ylabel(figure["y_label"])
    axes.set_title(figure["title"], fontsize=11)
    axes.grid(True, color="#808080", alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if any(one["label"] for one in series):
        beside = rows > 0 or len(series) > 6  # bars fill their axes
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.9 / canvas.get_figheight()), "ncols": 2} if beside else {"loc": "best"}
        axes.legend(fontsize=8, framealpha=0, **place)
    out = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": figure["id"], "font.family": "sans-serif"}):
        canvas.savefig(out, format="svg", transparent=True, bbox_inches="tight", pad_inches=0.08, metadata={"Date": None, "Creator": None})
    svg = out.getvalue().decode()
    svg = svg[svg.index("<svg"):].strip()
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    # Names of glyphs, clip paths and groups are the page's: each figure has its own.
    svg = re.sub(r'\bid="([^"]+)"', lambda found: f'id="{figure["id"]}-{found.group(1)}"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", lambda found: f'url(#{figure["id"]}-{found.group(1)})', svg)
    svg = re.sub(r'xlink:href="#([^"]+)"', lambda found: f'xlink:href="#{figure["id"]}-{found.group(1)}"', svg)
    svg = re.sub(r"#000000\b", "currentColor", svg)
    return svg.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)


def draw(figures):
    """The figures as SVG texts, in their order."""
    matplotlib = _libraries()
    with matplotlib.rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10}):
        return [_draw(matplotlib, figure) for figure in figures]
