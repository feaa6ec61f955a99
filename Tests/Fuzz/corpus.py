"""The inputs that are kept of each fuzz target, a text file for each: Corpus/TARGET.txt has a line for each input, its name and,
behind a space, its octets: visible ASCII as it is, the others as `\\n`, `\\r`, `\\\\` or `\\xNN`.

/usr/bin/python3 -B corpus.py unpack FOLDER          writes each input into FOLDER/TARGET/NAME, for libFuzzer
/usr/bin/python3 -B corpus.py add TARGET FILE...     keeps inputs that libFuzzer has found, by names that their octets give
/usr/bin/python3 -B corpus.py keys                   prints the words of the settings' dictionary that the installed file names
"""

import hashlib
import pathlib
import re
import sys

CORPUS = pathlib.Path(__file__).parent / "Corpus"
ESCAPES = {b"\\": b"\\\\", b"\n": b"\\n", b"\r": b"\\r"}


def escaped(octets):
    return re.sub(rb"[^ -\[\]-~]", lambda found: ESCAPES.get(found[0], b"\\x%02x" % found[0][0]), octets)


def unescaped(text):
    octets = {escape: octet for octet, escape in ESCAPES.items()}
    return re.sub(rb"\\(?:x(..)|.)", lambda found: octets.get(found[0]) or bytes.fromhex(found[1].decode()), text)


def read(target):
    """The inputs of a target by name."""
    path = CORPUS / f"{target}.txt"
    lines = path.read_bytes().splitlines() if path.exists() else []
    return {name.decode(): unescaped(text) for name, _, text in (line.partition(b" ") for line in lines)}


def write(target, inputs):
    lines = [name.encode() + b" " + escaped(octets) + b"\n" for name, octets in sorted(inputs.items())]
    (CORPUS / f"{target}.txt").write_bytes(b"".join(lines))


def unpack(folder):
    for path in CORPUS.glob("*.txt"):
        into = pathlib.Path(folder) / path.stem
        into.mkdir(parents=True, exist_ok=True)
        for name, octets in read(path.stem).items():
            (into / name).write_bytes(octets)


def add(target, *files):
    inputs = read(target)
    for file in files:
        octets = pathlib.Path(file).read_bytes()
        if octets not in inputs.values():
            inputs[hashlib.sha1(octets).hexdigest()[:16]] = octets
    write(target, inputs)


def keys():
    section = None
    for line in (CORPUS.parents[2] / "config/httpdnsd.toml").read_text().splitlines():
        if heading := re.fullmatch(r"#?\[(\w+)\]", line):
            section = heading[1]
            print(rf'"[{section}]\x0a"')
        elif key := re.match(r"#(\w+) = ", line):
            print(rf'"{key[1]} = "', rf'"\x01HTTPDNSD_{section.upper()}_{key[1].upper()}="', sep="\n")


if __name__ == "__main__":
    {"unpack": unpack, "add": add, "keys": keys}[sys.argv[1]](*sys.argv[2:])
