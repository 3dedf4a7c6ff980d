"""The bench's tables in Markdown."""

import expected
import paper

NONE = "–"


def table(head, rows):
    """Lay out a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def number(value):
    return NONE if value is None else f"{value:,}" if isinstance(value, int) else value


def variables(runs):
    """Table 4.13, ours and the paper's."""
    rows = []
    for run in runs:
        c = run.counts
        row = (c["variables"], c["persistent"], c["top_level"], c["updateable"], c["impact_packets"], c["impact_logs"])
        rows.append([run.name, run.mode, number(c["instructions"]), *map(number, row[:4]),
                     f"{number(row[4])} / {number(row[5])}"])
    for name, row in paper.VARIABLES.items():
        rows.append([f"*{name}, the paper*", "", NONE, *map(number, row[:4]), f"{number(row[4])} / {number(row[5])}"])
    head = ["program", "fields", "instructions", "all", "persistent", "top-level", "updateable", "impact packets / logs"]
    return table(head, rows)


def cost(runs):
    """Table 4.17, ours and the paper's."""
    rows = [[r.name, r.mode, f"{r.seconds:.1f}", number(r.megabytes), NONE if r.bar is None else f"{r.bar:g}"] for r in runs]
    for name, (_, hours, gigabytes) in paper.COST.items():
        rows.append([f"*{name}, the paper*", "", number(int(hours * 3600)), number(int(gigabytes * 1024)), ""])
    return table(["program", "fields", "analysis (CPU s)", "memory (MB)", "bar (s)"], rows)


def dimensions(runs):
    """Figure 4.14: how many updateable variables are keyed by how many header fields."""
    rows = []
    for run in runs:
        sizes = [len(v["scope"]) for v in run.report["variables"] if v["updateable"] and v["scope"]]
        by_size = [sum(1 for s in sizes if s == n) for n in range(1, 7)]
        rows.append([run.name, run.mode, *by_size, sum(1 for s in sizes if s > 6), max(sizes, default=0)])
    for name, most in paper.MOST_FIELDS.items():
        rows.append([f"*{name}, the paper*", "", *[NONE] * 7, most])
    return table(["program", "fields", "1", "2", "3", "4", "5", "6", "more", "most"], rows)


def agreement(runs):
    """How far the answers agree with those written by hand."""
    rows = []
    for run in runs:
        if run.agreement is None:
            continue
        found = run.agreement
        expect = expected.answers(run.name)
        wanted = [sum(expected.LEVELS.index(a.level) >= n for a in expect) for n in (1, 2, 3)]
        said = run.counts
        rows.append([run.name, run.mode, *(f"{s} of {w}" for s, w in zip(
            (said["persistent"], said["top_level"], said["updateable"]), wanted)), len(found.missed), len(found.extra),
            len(found.blurred)])
    head = ["program", "fields", "persistent", "top-level", "updateable", "missed", "too much", "blurred scopes"]
    return table(head, rows)


STEPS = """What each step gains: top-level / updateable / scopes, with all steps and without one; with `--fields`, but for
OpenVPN and HAProxy. Scopes: where answers were written by hand, how many are exactly right; else how many updateable variables
have header fields, and the most of them."""


def steps(names, by_step):
    """What each step gains: top-level / updateable / scopes without it, beside all steps."""
    rows = []
    for step, runs in by_step.items():
        cells = []
        for name in names:
            run = runs.get(name)
            if run is None:
                cells.append(NONE)
                continue
            scopes = [len(v["scope"]) for v in run.report["variables"] if v["updateable"] and v["scope"]]
            told = (f"{run.agreement.right} of {run.agreement.judged}" if run.agreement
                    else f"{len(scopes)}, most {max(scopes, default=0)}")
            cells.append(f"{run.counts['top_level']} / {run.counts['updateable']} / {told}")
        rows.append([step, *cells])
    return table(["", *names], rows)


def whole(runs, names, by_step):
    """All tables, as they stand in the documentation."""
    return "\n\n".join([
        variables(runs),
        "What the analysis takes (the paper's rows: CodeSurfer's hours, as seconds):", cost(runs),
        "Updateable variables by the number of header fields that key them:", dimensions(runs),
        "Answers of the analysis, of answers written by hand; *missed* is unsound, *too much* imprecise:", agreement(runs),
        *([STEPS, steps(names, by_step)] if by_step else []),
    ])


def into(file, text):
    """Replace what stands between the marks in a document."""
    begin, end = "<!-- statealyzr -->", "<!-- /statealyzr -->"
    old = file.read_text()
    if begin not in old or end not in old:
        raise SystemExit(f"{file}: there is no {begin} … {end} to write the tables into")
    file.write_text(old.split(begin)[0] + f"{begin}\n\n{text}\n\n{end}" + old.split(end)[1])
