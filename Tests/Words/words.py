"""Plain words: what documents and messages do not say, and what they say instead. `make lint` runs it; it needs no build.

A word is looked for in prose, not in what a document writes as code, in the program's texts, comments and names."""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).parents[2]
# What is not said: what is said instead.
WORDS = {
    "nobody": "a noun: no server, no client, no attacker",
    "somebody": "a noun: a server, an attacker",
    "anybody": "a noun: any client",
    "everybody": "a noun: every client, every user",
    "whoever": "a noun: an attacker who, a client that",
    "in vain": "without effect",
    "look after": "check",
    "for ever": "without end",
    "stand in": "be in, or a substitute",
    "stands in": "is in, or a substitute",
    "stood in": "was in, or a substitute",
    "utilize": "use",
    "utilise": "use",
    "leverage": "use",
    "in order to": "to",
    "prior to": "before",
    "subsequently": "then",
    "thereby": "so",
    "whilst": "while",
    "aforementioned": "this",
    "vouches for": "has signed",
    "vouch for": "sign",
}
PATTERN = re.compile(rf"\b({'|'.join(map(re.escape, WORDS))})\b", re.IGNORECASE)
# The same of comments alone: for readers who have never seen the program, each sentence names its subject.
COMMENT_WORDS = {
    "told": "gets, learns, is called with",
    "heed": "use, follow",
    "heeds": "uses, follows",
    "heeded": "used, followed",
    "anew": "again",
    "as ever": "as usual, or how",
    "of before": "former, earlier",
    "of now": "present",
    "teller": "the source of the answer",
    "anyone": "a noun: any client, any host",
    "no one": "a noun: no server, no client",
    "somebody else": "a noun: another server, another author",
    "is said": "is logged, reported, shown",
    "are said": "are logged, reported, shown",
    "be said": "be logged, reported, shown",
    "was said": "was logged, reported, shown",
    "has said": "has answered, reported",
    "have said": "have answered, reported",
    "lies in": "is in",
    "lie in": "be in",
    "stands for": "means, replaces",
    "stand for": "mean, replace",
    "stands behind": "follows",
    "stands beside": "is beside",
    "what stands": "a noun: the text, the entry",
    "in the place of": "instead of",
    "in its place": "instead of it",
    "in their places": "instead of them",
    "not wanted any more": "no longer needed",
    "all the same": "still",
    "dearer": "more expensive",
    "is dear": "is costly",
    "are dear": "are costly",
    "tells apart": "distinguishes",
    "told apart": "distinguished",
    "what becomes of": "the result of, the fate of",
    "what comes of": "the result of",
    "what is known of": "the state of",
    "looks at anything": "does other work",
    "of no use any more": "unusable",
    "for good": "permanently",
    "without a word": "silently",
}
# The same of names in the program, of which each part counts: `nobodyToAsk`.
NAME_WORDS = {
    "told": "announced, reported",
    "heed": "apply",
    "heeds": "applies",
    "anew": "again",
    "vain": "without effect",
    "door": "listener",
    "doors": "listeners",
    "teller": "origin",
    "nobody": "noServer, noClient",
    "anybody": "anyServer, anyClient",
    "whoever": "a noun",
    "place": "index, offset, rank, position, location",
    "places": "indices, offsets, ranks, positions, locations",
}
COMMENT_PATTERN = re.compile(
    rf"\b({'|'.join(re.escape(word) for word in sorted({**WORDS, **COMMENT_WORDS}, key=len, reverse=True))})\b", re.IGNORECASE
)


def prose(path):
    """Each line of a document, with blanks where code is."""
    text = path.read_text()
    if path.suffix == ".md":
        text = re.sub(r"^```.*?^```$", lambda block: re.sub(r"[^\n]", " ", block[0]), text, flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"`[^`\n]+`", lambda code: " " * len(code[0]), text)
        # Figures are described in the program.
        text = re.sub(r"^\| *\| (?:gauge|counter|histogram) .*$", "", text, flags=re.MULTILINE)
    if path.suffix in (".8", ".5"):
        text = re.sub(r"^\.(?:Li|Ic|It Li) .*$", "", text, flags=re.MULTILINE)
    return text.split("\n")


def texts(path):
    """Each line of a source, what is not a text of several words left out."""
    for line in path.read_text().split("\n"):
        is_comment = line.lstrip().startswith("//")
        line = line.replace("nobody (no server answered)", "")  # a word of `watch`
        yield "" if is_comment else " ".join(text for text in re.findall(r'"((?:[^"\\]|\\.)*)"', line) if " " in text)


def comments(path):
    """Each paragraph of a source's comments, with the number of its first line and what it writes as code left out."""
    first, paragraph = 0, []
    for number, line in enumerate([*path.read_text().split("\n"), ""], 1):
        comment = re.match(r"\s*///?(.*)|(?:[^\"]|\"(?:[^\"\\]|\\.)*\")*?  // (.*)", line)
        text = next((part for part in comment.groups() if part is not None), "") if comment else ""
        if not text.strip() or comment[1] is None or re.match(r"\s*(?:-|\d+\.|\|) ", text):
            if paragraph:
                yield first, re.sub(r"``[^`]*``|`[^`]*`", "", " ".join(paragraph))
            paragraph = []
        if text.strip():
            first = first if paragraph else number
            paragraph.append(re.sub(r"^\s*- (?:Parameter )?\w+: ", "", text).strip())


def documents():
    yield TOP / "README.md"
    yield from sorted(path for path in (TOP / "docs").glob("*.md") if not path.name.endswith(".zh-CN.md"))
    yield from (path for path in sorted((TOP / "Tests").glob("*/README.md")))
    for folder, pattern in (("config/man", "*"), ("config", "*.toml"), ("config/examples", "*.toml"), ("config/debian", "control"),
                            ("config/container", "**/*.*ml"), ("config/prometheus", "*.yml")):
        yield from sorted((TOP / folder).glob(pattern))


def found_in_names(path):
    """The names in a source: what is neither a text nor a comment."""
    for number, line in enumerate(path.read_text().split("\n"), 1):
        code = re.sub(r'"(?:\\\((?:"[^"]*"|\([^()]*\)|[^"()])*\)|\\.|[^"\\])*"', "", line).partition("//")[0]
        for name in re.findall(r"\b[A-Za-z_]\w*", code):
            for part in re.findall(r"[A-Z]?[a-z]+", name):
                if part.lower() in NAME_WORDS:
                    yield f"{path.relative_to(TOP)}:{number}: the name {name}: say {NAME_WORDS[part.lower()]}"


def found_in_comments(path):
    for number, text in comments(path):
        for word in COMMENT_PATTERN.finditer(text):
            advice = {**WORDS, **COMMENT_WORDS}[word[0].lower()]
            yield f"{path.relative_to(TOP)}:{number}: a comment: \"{word[0]}\": say {advice}"


def found(path):
    for number, line in enumerate(texts(path) if path.suffix == ".swift" else prose(path), 1):
        for word in PATTERN.finditer(line):
            yield f"{path.relative_to(TOP)}:{number}: \"{word[0]}\": say {WORDS[word[0].lower()]}"


if __name__ == "__main__":
    # The messages about settings have rules of their own.
    sources = sorted(path for path in (TOP / "Sources").rglob("*.swift") if "Configuration" not in path.parts)
    commented = sorted((TOP / "Sources").rglob("*.swift"))
    complaints = [line for path in [*documents(), *sources] for line in found(path)]
    complaints += [line for path in commented for find in (found_in_comments, found_in_names) for line in find(path)]
    print("\n".join(complaints))
    sys.exit(bool(complaints))
