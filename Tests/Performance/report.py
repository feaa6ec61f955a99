"""Medians, ranges and ratios of what was measured, as text for a terminal and as Markdown."""

import json
import statistics

from doors import DOORS
from growth import GROWTH
from interval import mean_and_interval
from servers import DAEMON, LIMIT
from special import SPECIAL as OTHERS
from targets import BEST, TARGETS
from workloads import WORKLOADS

SPECIAL = OTHERS | DOORS | GROWTH
MUCH = {"rate", "misses/s", "scale", "names", "rate ratio"}  # figures of which more is better
UNITS = {"cpu": "µs", "p50": "µs", "p99": "µs", "miss p50": "µs", "miss p99": "µs", "alone p99": "µs", "rate": "/s",
         "misses/s": "/s", "resident": "MB", "anonymous": "MB", "bytes a pair": "B", "first answer": "ms", "first lookup": "ms",
         "first answer, file": "ms", "reading the file": "ms",
         "hit": "µs", "miss": "µs", "handshake": "µs", "connection": "KiB"}
BAD = 0.05  # of the queries lost or wrong: no good to compare with
TITLES = ({one.name: one.title for one in WORKLOADS} | {name: one[0] for name, one in SPECIAL.items()}
          | {"idle": "memory after the first answer"})
SHOWN = ({one.name: one.shown for one in WORKLOADS} | {name: one[2] for name, one in SPECIAL.items()}
         | {"idle": ("resident", "anonymous")})

NAMES = {one.name: one.names for one in WORKLOADS}


def _is_rival(server):
    return server != LIMIT and not server.startswith((DAEMON, f"{LIMIT},"))


def _are_comparable(server, rival):
    """Who asks by DNS over TLS or HTTPS is compared with those who do the same, who asks as no rival can with all."""
    way = server.rpartition(" ")[2]
    return way not in ("dot", "doh") or rival.endswith(f" {way}")


def summarize(cells):
    """Workload → server → figure → median, least, most; and of it and of the passes' ratios the mean and its interval."""
    rounds, order = {}, {}
    for cell in cells:
        rounds.setdefault((cell.get("run", 0), cell["round"], cell["workload"]), {})[cell["server"]] = cell["figures"]
        order.setdefault(cell["workload"], {}).setdefault(cell["server"], None)
    return {workload: {server: _figures(rounds, workload, server) for server in found} for workload, found in order.items()}


def _figures(rounds, workload, server):
    values = {}
    for (_, _, of), servers in rounds.items():
        if of != workload or server not in servers:
            continue
        for figure, value in servers[server].items():
            kept = values.setdefault(figure, {"all": [], "to limit": [], "to best": [], "best": []})
            kept["all"].append(value)
            limit = servers.get(LIMIT, {}).get(figure)
            if limit:
                kept["to limit"].append(value / limit)
            rivals = {other: figures[figure] for other, figures in servers.items()
                      if _is_rival(other) and other != server and _are_comparable(server, other) and figure in figures
                      and figures.get("bad", 0) <= BAD}
            if rivals:
                best = (max if figure in MUCH else min)(rivals, key=rivals.get)
                kept["best"].append(best)
                if rivals[best]:
                    kept["to best"].append(value / rivals[best])
    return {figure: _spread(kept) for figure, kept in values.items()}


def _spread(kept):
    result = {"median": statistics.median(kept["all"]), "min": min(kept["all"]), "max": max(kept["all"])}
    for what in ("all", "to limit", "to best"):
        if kept[what]:
            result[what], result[f"{what}, interval"] = mean_and_interval(kept[what])
    if kept["best"]:
        result["best"] = statistics.mode(kept["best"])
    return result


def number(value):
    """Short, and yet a ratio that misses its bound by a hundredth shows it."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def text(results):
    summary = results["summary"]
    lines = [f"httpdnsd bench, {results['date']}, {results['machine']}", f"{results['rounds']} rounds; median (least to most); "
             "cpu: user and system, µs an answer; ×limit, ×best: mean of the ratios within a pass, with its 95 % interval"]
    for workload, found in summary.items():
        lines += ["", f"{workload}: {TITLES[workload]}", *_table(found, SHOWN[workload], NAMES.get(workload, 0))]
    judged = list(_judged(summary))
    lines += ["", "Targets"]
    for target, value, bound, verdict in judged:
        if value is not None:
            lines.append(f"  {str(target):64} {bound:>10}  {value:>22}  {verdict}")
    unmeasured = sorted({f"{target.workload}{f' ({target.note})' if target.note else ''}"
                         for target, value, _, _ in judged if value is None})
    for what, items in (("not measured", unmeasured), ("left out", results["left out"]),
                        ("no time was left for", results["cut short"])):
        if items:
            lines.append(f"{what}: " + ", ".join(items))
    return "\n".join(lines)


def _table(found, shown, names):
    """A row for each server, a column for each figure and for each ratio that any server has."""
    header, rows = [""], [[server] for server in found]
    for figure in shown:
        header.append(f"{figure} {UNITS.get(figure, '')}".strip())
        for row, figures in zip(rows, found.values()):
            row.append(_spread_text(figures.get(figure)))
        for ratio, sign in (("to limit", "×limit"), ("to best", "×best")):
            if any(ratio in figures.get(figure, {}) for figures in found.values()):
                header.append(sign)
                for row, figures in zip(rows, found.values()):
                    row.append(_ratio_text(figures.get(figure, {}), ratio))
    for row, figures in zip(rows, found.values()):
        bad, known = (figures.get(figure, {"median": otherwise})["median"] for figure, otherwise in (("bad", 0), ("names", names)))
        notes = [f"{bad:.1%} lost or wrong"] if bad > 0.001 else []
        per_thousand = figures.get("connections", {"median": 0})["median"]
        notes += [f"a connection for {1000 / per_thousand:,.0f} answers"] if per_thousand > 10 else []
        # There was no time to have all of them cached.
        notes += [f"{known:,.0f} names only"] if known < names else []
        row.append(", ".join(notes))
    header.append("")
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    return ["  " + "  ".join(cell.ljust(width) if column in (0, len(header) - 1) else cell.rjust(width)
                             for column, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in [header, *rows]]


def _spread_text(found):
    if found is None:
        return ""
    if found["min"] == found["max"]:
        return number(found["median"])
    return f"{number(found['median'])} ({number(found['min'])}–{number(found['max'])})"


def _ratio_text(found, ratio):
    if ratio not in found:
        return ""
    least, most = found[f"{ratio}, interval"]
    return f"{found[ratio]:.2f}" if least == most else f"{found[ratio]:.2f} ({least:.2f}–{most:.2f})"


def _judged(summary):
    """Each target, and how it is met. A value between noise on both sides of its bound says neither."""
    for target in TARGETS:
        value, interval = target.value(summary)
        if value is None:
            verdict = f"not measured{f' ({target.note})' if target.note else ''}"
        else:
            verdict = {2: "met", 1: "open", 0: "missed"}[sum(target.is_met(end) for end in interval)]
        sign = "≥" if target.at_least else "≤"
        if target.against == BEST:
            sign = ">" if target.at_least else "<"
        yield target, _interval_text(value, interval), f"{sign} {number(target.bound)}", verdict


def _interval_text(value, interval):
    if value is None or interval[0] == interval[1]:
        return None if value is None else number(value)
    return f"{number(value)} ({number(interval[0])}–{number(interval[1])})"


def markdown(paths):
    """RESULTS.md beside this file, over all rounds of all runs."""
    cells, runs = [], []
    for index, path in enumerate(paths):
        with open(path) as file:
            runs.append(json.load(file))
        cells += [cell | {"run": index} for cell in runs[-1]["cells"]]
    summary, last = summarize(cells), runs[-1]
    versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    lines = ["# Results of the bench", "",
             "Every figure of the runs that [Performance](../../docs/performance.md) speaks of. This page is written by",
             "`Tests/Performance/bench.py --table RESULTS.json…`.", "",
             f"`{last['command']}`, {len(runs)} runs of {last['rounds']} rounds, {last['date'].split(' ')[0]}, commit "
             f"{last['commit']}; {last['machine']}; {versions}. Medians over all rounds with their range; CPU is user and system, for "
             "each answer.", ""]
    for title, columns in GRIDS.items():
        lines += [f"## {title}", "", *_grid(summary, columns), ""]
    lines += ["## How cost grows", "", *_growth(summary), "", "## Targets", "",
              "*Limit* is the least that any server can cost, *best rival* the best of the other servers of the same pass. In brackets is",
              "the interval that holds the true mean 19 times in 20: a target is met or missed if all of it is, and else open.", "",
              "| target | bound | measured | |", "| --- | --- | --- | --- |"]
    for target, value, bound, verdict in _judged(summary):
        lines.append(f"| {target} | {bound} | {value or ''} | {verdict} |")
    return "\n".join(lines)


def _grid(summary, columns):
    """Servers down, figures across; the cheapest first."""
    servers = {server: None for _, workload, _ in columns for server in summary.get(workload, {})}

    def cell(server, workload, figure):
        return summary.get(workload, {}).get(server, {}).get(figure)
    order = sorted(servers, key=lambda server: (cell(server, *columns[0][1:]) or {"median": float("inf")})["median"])
    yield "| | " + " | ".join(title for title, _, _ in columns) + " |"
    yield "| --- |" + " --- |" * len(columns)
    for server in order:
        cells = [_spread_text(cell(server, workload, figure)) for _, workload, figure in columns]
        if any(cells):
            name = f"**{server}**" if server.startswith(DAEMON) else server
            yield f"| {name} | " + " | ".join(cells) + " |"


def _growth(summary):
    """What hits, misses and memory become as one thing grows."""
    yield "| with | hits: µs | misses: µs | memory: MB |"
    yield "| --- | --- | --- | --- |"
    for workload in GROWTH:
        for server, figures in summary.get(workload, {}).items() if workload.startswith("growth-") else ():
            cells = [_spread_text(figures.get(figure)) for figure in ("hit", "miss", "resident")]
            yield f"| {server.partition(', ')[2]} | " + " | ".join(cells) + " |"


GRIDS = {  # title, workload, figure
    "Hits": [
        ("hits, 1,000 names: µs", "hits-1000", "cpu"), ("100,000 names: µs", "hits-100000", "cpu"),
        ("1,000,000 names: µs", "hits-1000000", "cpu"),
        ("10,000 queries/s: µs", "rate-1000", "cpu"), ("p50 µs", "rate-1000", "p50"), ("p99 µs", "rate-1000", "p99"),
        ("beside work that gives way: hits' p99, times", "beside-work", "p99 ratio"),
        ("a TCP connection each: µs", "tcp-connections", "cpu"), ("pipelined: µs", "tcp-pipeline", "cpu")],
    "Misses over plain DNS, memory, start": [
        ("misses over plain DNS: µs", "miss-plain", "cpu"), ("a second", "miss-plain", "rate"),
        ("AAAA made of A: µs", "miss-nat64", "cpu"), ("one at a time: µs", "miss-plain-one", "cpu"), ("p50 µs", "miss-plain-one", "p50"),
        ("p50 µs, awake", "miss-plain-one-awake", "p50"),
        ("20 ms away: a second", "miss-plain-20ms", "rate"), ("idle MB", "idle", "resident"),
        ("exec to first lookup: ms", "start", "first lookup")],
    "Encrypted misses": [
        ("encrypted misses: µs", "miss", "cpu"), ("a second", "miss", "rate"), ("one at a time: µs", "miss-one", "cpu"),
        ("p50 µs", "miss-one", "p50"), ("p50 µs, awake", "miss-one-awake", "p50"), ("20 ms away: a second", "miss-20ms", "rate"),
        ("5 % misses: hits' p99 µs", "mix", "p99"), ("beside misses: hits' p99, times", "beside-misses", "p99 ratio")],
}
