#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""nessie-bench-plot LINES PICTURE: draws what `nessie bench NAME --json` wrote; the picture's suffix says how (png, svg, pdf).

`nessie bench NAME --plot PICTURE` runs it. Series are drawn over the size; those of several numbers of clients, over these.
"""
import json
import sys

try:
    import matplotlib
except ImportError:
    sys.exit("no picture: matplotlib is missing; install python3-matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot   # noqa: E402
from matplotlib.ticker import FuncFormatter, NullLocator   # noqa: E402

LINE_STYLES = {"nessie": "-"}   # the others': dashed



def of_xfer(direction, nnti, *openmpi):
    """What goes in one direction: the service's, NNTI's own, Open MPI's, libtirpc's codec and calls."""
    def belongs(series):
        if series["system"] == "openmpi":
            return series["mode"] in openmpi
        if series["system"] == "libtirpc":
            return direction in series["mode"] or series["mode"] == "encode-decode"
        return series["mode"].startswith((direction, nnti)) and not series["mode"].endswith("-counted")
    return belongs


# Which series share a panel; where nothing is said, those of a metric do.
PANELS = {
    "xfer": [("write, one client", of_xfer("write", "get", "send", "put")),
             ("read, one client", of_xfer("read", "put", "get")),
             ("1 MiB, many clients together", lambda series: series["mode"].endswith("-counted"))],
}


def read_series(path):
    """The lines that are no ratios."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.startswith("{")]
    return [line for line in lines if "ratio" not in line]


def panels_of(series):
    """(title, its series) of each panel that has any."""
    metrics = dict.fromkeys((one["metric"], one["unit"]) for one in series)
    by_metric = [(metric, lambda one, m=metric: one["metric"] == m) for metric, _ in metrics]
    chosen = PANELS.get(series[0]["bench"], by_metric)
    panels = [(title, [one for one in series if belongs(one)]) for title, belongs in chosen]
    return [(title, members) for title, members in panels if members]


def size_text(size, _=None):
    for unit, name in ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")):
        if size >= unit:
            return f"{size / unit:g} {name}B"
    return f"{size:g} B"


def draw_panel(axis, title, members):
    """One line for each system and mode."""
    x = "clients" if len({one["clients"] for one in members}) > 1 else "size_bytes"
    lines = {}
    for one in members:
        lines.setdefault((one["system"], one["transport"], one["mode"]), []).append(one)
    for (system, transport, mode), points in lines.items():
        points.sort(key=lambda one: one[x])
        places, medians = [one[x] for one in points], [one["median"] for one in points]
        colour = axis.plot(places, medians, LINE_STYLES.get(system, "--"), marker="o", markersize=3, linewidth=1.2,
                           label=f"{system} {mode} ({transport})")[0].get_color()
        axis.fill_between(places, [one["min"] for one in points], [one["max"] for one in points], color=colour, alpha=0.12)
    ticks = sorted({one[x] for one in members})
    axis.set_xscale("symlog" if 0 in ticks else "log", base=2)
    axis.set_yscale("log")
    axis.set_xticks(ticks)
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(size_text if x == "size_bytes" else lambda value, _: f"{value:g}"))
    axis.tick_params(axis="x", labelrotation=45, labelsize=8)
    axis.set_title(title, fontsize=11)
    axis.set_xlabel("clients" if x == "clients" else "size", fontsize=9)
    axis.set_ylabel(members[0]["unit"], fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize=7, frameon=False, ncol=2, loc="upper center", bbox_to_anchor=(0.5, -0.17))


def draw(series, path):
    panels = panels_of(series)
    figure, axes = pyplot.subplots(1, len(panels), figsize=(6.5 * len(panels), 6.5), squeeze=False)
    for axis, (title, members) in zip(axes[0], panels):
        draw_panel(axis, title, members)
    figure.suptitle(f"nessie bench {series[0]['bench']}: medians and extremes", fontsize=10, color="#52606d")
    figure.tight_layout(rect=(0, 0, 1, 0.97))
    figure.savefig(path, dpi=150)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: nessie-bench-plot LINES PICTURE")
    series = read_series(sys.argv[1])
    if not series:
        sys.exit(f"no picture: {sys.argv[1]} has no measurements")
    try:
        draw(series, sys.argv[2])
    except (OSError, ValueError) as error:   # a folder that is not there, a suffix that nobody can draw
        sys.exit(f"no picture: {error}")


if __name__ == "__main__":
    main()
