"""Plain words: what documents and messages do not say, and what they say instead. `make lint` runs it; it needs no build.

A word is looked for in prose, not in what a document writes as code, and in the program's texts, not in its comments."""

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


def documents():
    yield TOP / "README.md"
    yield from sorted(path for path in (TOP / "docs").glob("*.md") if not path.name.endswith(".zh-CN.md"))
    yield from (path for path in sorted((TOP / "Tests").glob("*/README.md")))
    for folder, pattern in (("config/man", "*"), ("config", "*.toml"), ("config/examples", "*.toml"), ("config/debian", "control"),
                            ("config/container", "**/*.*ml"), ("config/prometheus", "*.yml")):
        yield from sorted((TOP / folder).glob(pattern))


def found(path):
    for number, line in enumerate(texts(path) if path.suffix == ".swift" else prose(path), 1):
        for word in PATTERN.finditer(line):
            yield f"{path.relative_to(TOP)}:{number}: \"{word[0]}\": say {WORDS[word[0].lower()]}"


if __name__ == "__main__":
    # The messages about settings have rules of their own.
    sources = sorted(path for path in (TOP / "Sources").rglob("*.swift") if "Configuration" not in path.parts)
    complaints = [line for path in [*documents(), *sources] for line in found(path)]
    print("\n".join(complaints))
    sys.exit(bool(complaints))
