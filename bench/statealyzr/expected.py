"""Answers written by hand, and how far the analysis agrees with them.

expected/NAME.txt has a line for every variable that the program's source declares: its name, where it is declared (file, or
file:function for static and local ones), the highest level it reaches, its scope, and why. Levels are `unseen` (the compiler
leaves it out), `persistent` (Figure 4.6 of Khalid's dissertation), `top-level` (4.7: packet-processing code uses it) and
`updateable` (4.9: such code may change it or what it leads to, in some run). A scope is `-` (one value), `*` (entries for all
flows), header fields with commas between them (4.10), or a dot where it is not judged.

The analysis must not miss: a lower level than the answer's, or a scope with more fields (Theorem A.4), is unsound. A higher
level, or a scope with fewer fields, is imprecise. Without --fields a struct is one location, so that header fields read into
one struct are all taken for the key: such scopes are told apart from what is missed, as `blurred`.
"""

import pathlib
from dataclasses import dataclass, field

FOLDER = pathlib.Path(__file__).resolve().parent / "expected"
LEVELS = ["unseen", "persistent", "top-level", "updateable"]


@dataclass
class Answer:
    name: str
    place: str
    level: str
    scope: str


@dataclass
class Agreement:
    """What was compared: as text, variables missed, those said too much of, and those with blurred scopes."""

    missed: list = field(default_factory=list)
    extra: list = field(default_factory=list)
    blurred: list = field(default_factory=list)
    # How many scopes are judged, and how many of them are exactly the answer's.
    judged: int = 0
    right: int = 0


def answers(name):
    """Return the answers for a program, or None if none are written."""
    file = FOLDER / f"{name}.txt"
    if not file.exists():
        return None
    found = []
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(maxsplit=4)
        if len(words) != 5 or words[2] not in LEVELS:
            raise SystemExit(f"{file}:{number}: expected a name, a place, a level ({', '.join(LEVELS)}), a scope and why")
        found.append(Answer(*words[:4]))
    return found


def level(variable):
    return "updateable" if variable["updateable"] else "top-level" if variable["top_level"] else "persistent"


def scope(variable):
    return "-" if variable["scope"] is None else ",".join(variable["scope"]) or "*"


def fields(text):
    """Return the header fields of a scope; one value has none either."""
    return set() if text in ("-", "*") else set(text.split(","))


def place(variable):
    declared = variable["declared"]
    function = declared.get("function")
    return pathlib.PurePath(declared["file"]).name + (f":{function}" if function else "")


def compare(name, report, with_fields):
    """Compare a report with the answers for a program; None if none are written."""
    expected = answers(name)
    if expected is None:
        return None
    agreement = Agreement()
    found = {(place(v), v["name"]): v for v in report["variables"]}
    for answer in expected:
        called = f"{answer.name} ({answer.place})"
        variable = found.pop((answer.place, answer.name), None)
        judged = answer.scope != "." and LEVELS.index(answer.level) >= LEVELS.index("top-level")
        agreement.judged += judged
        if variable is None:
            if answer.level != "unseen":
                agreement.missed.append(f"{called} is not found")
            continue
        said, due = LEVELS.index(level(variable)), LEVELS.index(answer.level)
        if said < due:
            agreement.missed.append(f"{called} is {answer.level}, said to be {level(variable)}")
        if said > due:
            agreement.extra.append(f"{called} is {answer.level}, said to be {level(variable)}")
        if answer.scope == "." or said < LEVELS.index("top-level"):
            continue
        if fields(scope(variable)) - fields(answer.scope):
            told = agreement.missed if with_fields else agreement.blurred
            told.append(f"{called} has scope {answer.scope}, said to be {scope(variable)}")
        elif fields(answer.scope) != fields(scope(variable)):
            agreement.extra.append(f"{called} has scope {answer.scope}, said to be {scope(variable)}")
        else:
            agreement.right += judged
    agreement.extra += [f"{called} ({at}) is none, said to be {level(v)}" for (at, called), v in found.items()]
    return agreement
