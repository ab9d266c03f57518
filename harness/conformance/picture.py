"""The matrix of subjects and cases as a picture, in SVG: docs/consumers.svg. Of table.py."""
import html
import re
import textwrap

# How an outcome looks: its colour, the colour and the glyph on it, and its name in the legend. What
# is wrong is darker than what is right, so that it shows without hues, too; glyphs tell the kinds.
LOOKS = {
    "right": ("#cfe3f5", "", "", "right"),
    "acceptable": ("#cfe3f5", "#3f77ad", "/", "acceptable"),
    "not run": ("none", "#999999", "-", "cannot be run"),
    "loses": ("#ed6925", "#000000", "L", "loses records"),
    "garbage": ("#bc3754", "#ffffff", "G", "garbage"),
    "floods": ("#8a226a", "#ffffff", "F", "floods"),
    "hangs": ("#57106e", "#ffffff", "H", "hangs"),
    "crashes": ("#2b0b4d", "#ffffff", "C", "crashes"),
    "out of bounds": ("#000004", "#ffffff", "O", "reads out of bounds"),
}
WRONG = tuple(LOOKS)[3:]
PARTS = {
    True: "Rings that real kernels produce",
    False: "Rings that only a broken or a foreign producer writes",
}
NAMES = {"cilium": "cilium/ ebpf", "perf-trace": "perf trace"}
MARGIN, LABEL, COLUMN = 10, 180, 69  # px: around all, of the groups' names, of a subject
MARK, PITCH, IN_A_LINE = 11, 12.5, 5  # px, px, marks in a line of a cell
LINE = 17  # px: of a group's name


def text(x, y, size, what, more=""):
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}"{more}>{html.escape(what)}</text>'


def define(outcome):
    """Returns the mark of an outcome, to be used at each case."""
    colour, ink, glyph, _ = LOOKS[outcome]
    size = f'width="{MARK}" height="{MARK}"'
    shape = f'<rect {size} rx="1.5" fill="{colour}"/>' if colour != "none" else ""
    if glyph == "/":
        shape += f'<path d="M1 7.5L7.5 1M3.5 10L10 3.5" stroke="{ink}" stroke-width="1.4"/>'
    elif glyph == "-":
        shape += f'<path d="M3 5.5H8" stroke="{ink}" stroke-width="1.4"/>'
    elif glyph:
        look = f' font-weight="bold" text-anchor="middle" fill="{ink}"'
        shape += text(MARK / 2, 9.2, 10, glyph, look)
    return f'<g id="{outcome.replace(" ", "-")}">{shape}</g>'


def mark(outcome, x, y, title=""):
    shown = f"<title>{html.escape(title)}</title>" if title else ""
    return f'<use href="#{outcome.replace(" ", "-")}" x="{x:g}" y="{y:g}">{shown}</use>'


def groups_of(cases_txt):
    """Returns the name of each case's group: the comment between empty lines that is above it."""
    groups, group = {}, ""
    for line in re.findall(r"^(?:case \S+|(?<=\n\n)# .*(?=\n\n))", cases_txt, re.MULTILINE):
        if line.startswith("#"):
            group = line[2:].split(":")[0]
        else:
            groups[line[5:]] = group
    return groups


class Picture:
    """Grows downwards, line by line."""

    def __init__(self, subjects, cases, outcomes, groups):
        self.subjects = subjects  # {name: version}
        self.cases = cases  # [(case, whether it is reachable)]
        self.outcomes = outcomes  # {(name, case): one of LOOKS}
        self.groups = groups
        self.width = 2 * MARGIN + LABEL + COLUMN * len(subjects)
        self.y = MARGIN
        self.lines = []

    def columns(self):
        """Yields each subject with the left of its column."""
        for number, name in enumerate(self.subjects):
            yield name, MARGIN + LABEL + COLUMN * number

    def legend(self):
        x, right = MARGIN, self.width - MARGIN
        self.y += 4
        self.lines.append(text(x, self.y + 10, 13, "A square is a case:"))
        x += 126
        for outcome, (_, _, _, name) in LOOKS.items():
            if outcome == WRONG[0]:
                x, self.y = MARGIN, self.y + 20
                self.lines.append(text(x, self.y + 10, 13, "Wrong:", ' font-weight="bold"'))
                x += 56
            wide = 30 + 7 * len(name)
            if x + wide > right:
                x, self.y = MARGIN, self.y + 20
            self.lines += [mark(outcome, x, self.y), text(x + 16, self.y + 10, 13, name)]
            x += wide
        self.y += 28

    def head(self):
        """The subjects, with their versions."""
        for name, x in self.columns():
            base = NAMES.get(name, name.replace("-i386", " i386")).split(" ")
            version = re.sub(r"^(\d+:)?([\d.]*).*", r"\2", self.subjects[name])
            for number, word in enumerate(reversed(base)):
                bold = ' font-weight="bold"'
                self.lines.append(text(x, self.y + 24 - 14 * number, 12, word, bold))
            self.lines.append(text(x, self.y + 38, 12, version, ' fill="#555555"'))
        self.y += 46

    def part(self, title, cases):
        """The cases that a real kernel writes, or the others."""
        wide = self.width - 2 * MARGIN
        band = f'<rect x="{MARGIN}" y="{self.y:g}" width="{wide}" height="22" fill="#e8e8e8"/>'
        title = f"{title}: {len(cases)} cases"
        self.lines += [band, text(MARGIN + 6, self.y + 16, 14, title, ' font-weight="bold"')]
        self.y += 22
        self.lines.append(text(MARGIN + 6, self.y + 20, 15, "wrong, of those run"))
        for name, x in self.columns():
            run = [each for case in cases if (each := self.outcomes[name, case]) != "not run"]
            wrong = sum(each in WRONG for each in run)
            ink = ' fill="#8a226a"' if wrong else ""
            self.lines.append(
                f'<text x="{x:g}" y="{self.y + 20:g}" font-size="17" font-weight="bold"{ink}>'
                f'{wrong}<tspan dx="4" font-size="12" font-weight="normal" fill="#555555">'
                f"of {len(run)}</tspan></text>"
            )
        self.y += 28
        for group in dict.fromkeys(self.groups[case] for case in cases):
            self.group(group, [case for case in cases if self.groups[case] == group])

    def group(self, group, cases):
        top = self.y
        self.lines.append(
            f'<path d="M{MARGIN} {top:g}H{self.width - MARGIN}" stroke="#d0d0d0"/>',
        )
        words = textwrap.wrap(group, 20)
        for number, line in enumerate(words):
            self.lines.append(text(MARGIN + 6, top + 16 + LINE * number, 15, line))
        for name, x in self.columns():
            for number, case in enumerate(cases):
                outcome = self.outcomes[name, case]
                title = "" if outcome == "right" else f"{name}, {case}: {outcome}"
                down, right = divmod(number, IN_A_LINE)
                self.lines.append(mark(outcome, x + PITCH * right, top + 6 + PITCH * down, title))
        rows = (len(cases) + IN_A_LINE - 1) // IN_A_LINE
        self.y = top + max(rows * PITCH + 10, len(words) * LINE + 7)

    def svg(self):
        self.legend()
        self.head()
        for reachable, title in PARTS.items():
            of_part = [case for case, of in self.cases if of == reachable]
            if of_part:
                self.part(title, of_part)
                self.y += 6
        height = self.y + MARGIN - 6
        return "\n".join(
            [
                '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
                f'width="{self.width}" height="{height:g}" viewBox="0 0 {self.width} {height:g}" '
                'font-family="Helvetica, Arial, sans-serif" fill="#000000">',
                "<!-- Written by ci/run conform (harness/conformance/picture.py). -->",
                "<title>Consumers of perf rings, and the cases that each gets wrong</title>",
                f'<rect width="{self.width}" height="{height:g}" rx="6" fill="#ffffff"/>',
                "<defs>",
                *map(define, LOOKS),
                "</defs>",
                *self.lines,
                "</svg>\n",
            ]
        )
