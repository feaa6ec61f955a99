"""The commands in documents that a reader types."""

import re


def part(document, heading):
    """The text between this heading of a document and the next one."""
    return re.split(r"\n##+ ", re.split(rf"\n##+ {heading}\n", document.read_text())[1])[0]


def blocks(document, heading, language):
    """The blocks of a language in a part."""
    return re.findall(rf"^```{language}\n(.*?)^```$", part(document, heading), re.MULTILINE | re.DOTALL)


def commands(document, heading):
    """The blocks of commands in a part."""
    return blocks(document, heading, "sh")
