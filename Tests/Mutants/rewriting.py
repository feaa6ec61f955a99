"""Where a Swift source decides, and how each decision is changed: by tokens, without a parser. Other code is left alone; what the
compiler refuses is left out by `mutants.py`.

All mutants are in one program: a place asks `isMutant` whether its own one is active."""

import dataclasses
import re

# Texts and comments, which become blanks of the same length.
SILENT = re.compile(r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
OPERATORS = ("&&", "||", "?", ":", "??", "+", "-", "*", "/", "%", "&", "|", "==", "!=", "<", ">", "<=", ">=",
             "=", "->", "&+", "&-", "..<")
BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
HEADER = re.compile(r"(?<![#.\w])(if|guard|while)\s|\bfor\b[^{}\n]*?\s(where)\s")
STATEMENT = re.compile(
    r"(?!(?:if|guard|while|for|switch|return|let|var|case|default|throw|try|await|defer|else|func|init|super|self\.init|do|repeat|"
    r"in|break|continue|import|private|public|fileprivate|package|typealias|static|mutating|precondition|assert|fatalError|unsafe|_)\b)"
    r"(?:[a-z_(][^={}]*? (?:&?[-+*/|^&]?)= .+|[a-z_][\w.?!]*[\w?!]*(?:\[[^=]*?\][\w.?!]*)*\(.*\))$")
CONSTANT = re.compile(
    r"^\s*(?:\w+ )*?static (?:let|var) \w+(?:: \w+)? (?:=|\{)[^\n]*?(?<![\w.])(\d[\d_]*)(?![\w.]*[\w(])", re.MULTILINE)


@dataclasses.dataclass
class Mutant:
    start: int
    end: int
    before: str
    after: str
    change: str
    number: int = 0
    file: str = ""
    line: int = 0
    source: str = ""
    # Where it is in the rewritten source.
    span: tuple = (0, 0)

    @property
    def name(self):
        return f"{self.file}:{self.line}: {self.change}: {self.source}"

    @property
    def key(self):
        """Its name without the line, which moves."""
        return f"{self.file}: {self.change}: {self.source}"


def blanked(text):
    def blank(found):
        inner = re.sub(r"[^\n]", " ", found[0])
        return '"' + inner[2:] + '"' if found[0].startswith('"') else inner

    return SILENT.sub(blank, text)


class Source:
    def __init__(self, text):
        self.text, self.code = text, blanked(text)
        self.headers = list(self.find_headers())
        self.inits = [(found.start(), self.closed(found.end()))
                      for found in re.finditer(r"(?<![.\w])init[?!]?[<(][^{}]*\{|(?<=\s)(?:deinit) \{", self.code)]

    def find_headers(self):
        """The conditions of `if`, `guard`, `while` and `for … where`: from behind the word to `else` or the brace."""
        for found in HEADER.finditer(self.code):
            word, depth, at = found[1] or found[2], 0, found.end()
            while at < len(self.code):
                letter = self.code[at]
                if word == "guard" and depth == 0 and re.match(r"\belse\b", self.code[at:at + 5]):
                    break
                if letter == "{" and depth == 0 and word != "guard":
                    break
                depth += (letter in "([{") - (letter in ")]}")
                if depth < 0:
                    break
                at += 1
            if depth == 0:
                yield found.end(), at

    def closed(self, at):
        """Where the brace is closed that is open here."""
        depth = 1
        while depth and at < len(self.code):
            depth += (self.code[at] == "{") - (self.code[at] == "}")
            at += 1
        return at

    def trimmed(self, start, end):
        while start < end and self.code[start].isspace():
            start += 1
        while start < end and self.code[end - 1].isspace():
            end -= 1
        return start, end

    def split(self, start, end, separators):
        """The parts between separators outside of brackets."""
        depth, at, begin = 0, start, start
        while at < end:
            letter = self.code[at]
            depth += (letter in "([{") - (letter in ")]}")
            separator = next((it for it in separators if self.code.startswith(it, at)), None)
            if depth == 0 and separator:
                yield self.trimmed(begin, at)
                at += len(separator)
                begin = at
            else:
                at += 1
        yield self.trimmed(begin, end)

    def goes_on(self, at):
        """Whether the line behind the one that ends here goes on with it."""
        word = self.code[at:].split(None, 1)[:1]
        return bool(word) and (word[0] in OPERATORS or word[0].startswith("."))

    def left(self, at, stops):
        """What is before an operator, back to another one of these or to what must end it."""
        at = end = len(self.code[:at].rstrip())
        depth = 0
        while at > 0:
            at -= 1
            letter = self.code[at]
            if letter in ")]}":
                depth += 1
            elif letter in "([{":
                if depth == 0:
                    return at + 1, end
                depth -= 1
            elif depth == 0:
                if letter in ",;" or letter == "\n" and not self.goes_on(at) or re.match(r":\s", self.code[at:at + 2]):
                    return at + 1, end
                ends = (*stops, "=", "+=", "-=", "?", ":", "->", "in")
                if letter == " " and any(self.code.startswith(f" {end} ", at) for end in ends):
                    return at + 1 + len(self.code[at + 1:].split(None, 1)[0]), end
                word = re.match(r"(?:return|if|guard|while|where|in|else|case|unsafe)\s", self.code[at:at + 8])
                if word and not re.match(r"[\w.]", self.code[at - 1]):
                    return at + word.end(), end
        return 0, end

    def right(self, at, stops):
        """What is behind an operator."""
        depth, start = 0, at
        is_header = any(begin <= at < end for begin, end in self.headers)
        while at < len(self.code):
            letter = self.code[at]
            if letter in "([{":
                if letter == "{" and depth == 0 and is_header:
                    return start, at
                depth += 1
            elif letter in ")]}":
                if depth == 0:
                    return start, at
                depth -= 1
            elif depth == 0:
                if letter in ",;" or letter == "\n" and not self.goes_on(at) or re.match(r"\S:\s", self.code[at - 1:at + 2]):
                    return start, at
                ends = "|".join(map(re.escape, (*stops, "?", ":", "else")))
                if re.match(rf"\s(?:{ends})\s", self.code[at:at + 8]):
                    return start, at
            at += 1
        return start, at

    def leaves(self):
        """Each smallest condition."""
        found = set()
        for start, end in self.headers:
            for clause in self.split(start, end, [","]):
                if not re.match(r"(?:let|var|case|#)\b|#", self.code[clause[0]:clause[1]]):
                    found.add(clause)
        for operator in re.finditer(r"(?<=\s)(&&|\|\|)\s", self.code):
            found.add(self.trimmed(*self.left(operator.start(), ("&&", "||"))))
            found.add(self.trimmed(*self.right(operator.end(), ("&&", "||"))))
        for operator in re.finditer(r"(?<=\s)(<|<=|>|>=|==|!=) (?!\()", self.code):
            start, end = self.left(operator.start(), ("&&", "||"))[0], self.right(operator.end(), ("&&", "||"))[1]
            found.add(self.trimmed(start, end))
        for operator in re.finditer(r"(?<=\s)\? ", self.code):
            found.add(self.trimmed(*self.left(operator.start(), ())))
        for span in sorted(found):
            parts = [part for half in self.split(*span, ["||"]) for part in self.split(*half, ["&&"])]
            if span[0] < span[1] and len(parts) == 1 and not re.match(r"func |case |static |let |var ", self.code[slice(*span)]):
                yield span

    def mutants(self):
        yield from self.conditions()
        for found in CONSTANT.finditer(self.code):
            yield Mutant(*found.span(1), "off(#, ", ")", "one more")
        at = 0
        for line in self.code.split("\n"):
            start, end = self.trimmed(at, at + len(line))
            if STATEMENT.match(self.code[start:end]) and self.is_whole(start, end):
                yield Mutant(start, end, "if !isMutant(#) { ", " }", "left out")
            at += len(line) + 1

    def conditions(self):
        for start, end in self.leaves():
            clause = self.code[start:end]
            if re.search(r"\b(?:await|try)\b|^(?:true|false)$|^_ =", clause):
                continue
            yield Mutant(start, end, "(isMutant(#) != (", "))", "negated")
            bounds = [found for found in re.finditer(r" (<=?|>=?) ", clause)
                      if not sum((letter in "([{") - (letter in ")]}") for letter in clause[:found.start()])]
            if len(bounds) == 1 and "\n" not in clause:
                at, to = start + bounds[0].start(1), BOUNDS[bounds[0][1]]
                other = self.text[start:at] + to + self.text[start + bounds[0].end(1):end]
                yield Mutant(start, end, f"(isMutant(#) ? ({other}) : (", "))", f"{bounds[0][1]} as {to}")

    def is_whole(self, start, end):
        """Whether a line is a statement of its own, not a value that a function gives nor part of `init`."""
        code, before = self.code[start:end], self.code[:start].rstrip()
        if any(begin < start < close for begin, close in self.inits):
            return False
        if re.search(r" (?:&&|\|\||\?\??|[<>]=?|==|!=|\.\.<) ", code.split(" = ")[0]):
            return False
        if re.search(r"->[^{}]*\{$", before) and self.code[end:].lstrip().startswith("}"):
            return False
        depth = 0
        for letter in code:
            depth += (letter in "([{") - (letter in ")]}")
            if depth < 0:
                return False
        last = before[-1:] if before else ""
        is_begun = last in "(,=:[" or before.split()[-1:] in [[it] for it in OPERATORS]
        return depth == 0 and not is_begun and not self.goes_on(end)


def rewritten(text, mutants):
    """The source with the mutants in it, line by line as it was; they learn where they are."""
    marks = []
    for mutant in mutants:
        size = mutant.end - mutant.start
        marks.append((mutant.start, 1, -size, mutant.number, mutant))
        marks.append((mutant.end, 0, size, -mutant.number, mutant))
    parts, at, length = [], 0, 0
    for place, is_start, _, _, mutant in sorted(marks, key=lambda mark: mark[:4]):
        added = (mutant.before.replace("#", str(mutant.number)) if is_start else mutant.after)
        parts += [text[at:place], added]
        length += place - at + len(added)
        mutant.span = (length - len(added), 0) if is_start else (mutant.span[0], length)
        at = place
    return "".join([*parts, text[at:]])
