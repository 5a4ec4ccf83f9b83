# SPDX-License-Identifier: BSD-3-Clause
"""What was measured, as a table and as a picture."""
import statistics

MODES = ("native", "direct", "caching", "auto")
COLUMNS = (("time in I/O", "io_s", " s", 3), ("until in the file", "durable_s", " s", 3), ("whole run", "run_s", " s", 2),
           ("perceived", "perceived_MBps", " MB/s", 0), ("durable", "durable_MBps", " MB/s", 0))
PANELS = (("time in I/O", "io_s"), ("until the bytes were in the file", "durable_s"),
          ("the whole run, with the drain", "run_s"))
COLOURS = {"native": "#9aa5b1", "direct": "#7fb3d5", "caching": "#1f6f8b", "auto": "#2f9e8f"}


def median(timings, name):
    return statistics.median(getattr(timing, name) for timing in timings)


def ratio(timings, native, name):
    return statistics.median(getattr(ours, name) / getattr(theirs, name) for ours, theirs in zip(timings, native))


def repetitions(all_measured):
    return len(all_measured[0].timings["native"])


def rows(measured):
    """A row of cells for each mode: the medians, and in brackets how many times native's."""
    for mode in MODES:
        row = [f"native ({measured.mpi_io})" if mode == "native" else f"staged, {mode}"]
        for _, name, unit, digits in COLUMNS:
            times = f" ({ratio(measured.timings[mode], measured.timings['native'], name):.2f} x)" if mode != "native" else ""
            row.append(f"{median(measured.timings[mode], name):.{digits}f}{unit}{times}")
        yield row


def print_table(all_measured):
    for measured in all_measured:
        print(f"\n{measured.program.name.capitalize()}: {measured.program.does}.")
        print(" " * 18 + "".join(f"{title:>22}" for title, *_ in COLUMNS))
        for row in rows(measured):
            print(f"{row[0]:<18}" + "".join(f"{cell:>22}" for cell in row[1:]))
    print(f"(medians of {repetitions(all_measured)} runs each; in brackets: times native's)")


def print_markdown(all_measured):
    print("\n|  | " + " | ".join(title for title, *_ in COLUMNS) + " |")
    print("|---|" + "---:|" * len(COLUMNS))
    for measured in all_measured:
        print(f"| **{measured.program.name}** |" + " |" * len(COLUMNS))
        for row in rows(measured):
            print("| " + " | ".join(row) + " |")


def draw_panel(axis, timings, name):
    values = [median(timings[mode], name) for mode in MODES]
    lows = [min(getattr(timing, name) for timing in timings[mode]) for mode in MODES]
    highs = [max(getattr(timing, name) for timing in timings[mode]) for mode in MODES]
    spread = [[value - low for value, low in zip(values, lows)], [high - value for value, high in zip(values, highs)]]
    axis.bar(MODES, values, color=[COLOURS[mode] for mode in MODES], width=0.62, yerr=spread,
             error_kw={"ecolor": "#52606d", "elinewidth": 0.9, "capsize": 2})
    axis.set_xticks(range(len(MODES)), [f"{mode}\n{value:.2f} s" for mode, value in zip(MODES, values)], fontsize=10)
    axis.tick_params(axis="x", length=0)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.set_yticks([])
    axis.set_ylim(0, max(highs) * 1.05)


def draw(all_measured, path):
    """The same as a picture, a line of panels for each program. False if there is no matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, lines = pyplot.subplots(len(all_measured), len(PANELS), figsize=(11, 3.2 * len(all_measured)), squeeze=False)
    for measured, line in zip(all_measured, lines):
        for axis, (title, name) in zip(line, PANELS):
            draw_panel(axis, measured.timings, name)
            axis.set_title(f"{measured.program.name}: {title}", fontsize=10.5)
    caption = [f"{measured.program.name}: {measured.program.does}" for measured in all_measured]
    caption.append(f"medians and extremes of {repetitions(all_measured)} runs each; identical files")
    figure.text(0.5, 0.01, "\n".join(caption), fontsize=9, color="#52606d", ha="center")
    figure.tight_layout(rect=(0, 0.09, 1, 1), h_pad=2)
    figure.savefig(path, dpi=150)
    return True
