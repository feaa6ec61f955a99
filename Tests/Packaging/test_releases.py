"""Releases have the same octets for the same sources, for every place, time and user of the build.

Here one binary is packed twice; `make reproducible` compiles twice as well.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

TIME = 1_795_305_600
# A substitute for the compiler, whose output is already there.
SWIFT = "#!/bin/sh\ncase $1 in --version) echo 'Swift version 6.3.1';; esac\n"


def make(tree, *targets, umask=0o022, **variables):
    done = subprocess.run(["make", "--no-print-directory", *targets], cwd=tree, capture_output=True, text=True, umask=umask,
                          env={"PATH": f"{tree}/bin:{os.environ['PATH']}", "HOME": "/", "LC_ALL": "C.UTF-8",
                               "SOURCE_DATE_EPOCH": str(TIME)} | variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def packed(top, binary, tree, **surroundings):
    """The digests of packages made from a copy of the sources, with the compiler's own binary."""
    (tree / ".build/release").mkdir(parents=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=top, capture_output=True, check=True).stdout
    subprocess.run(["cp", "--parents", "--target-directory", tree, "--no-preserve=timestamps",
                    *(os.fsdecode(name) for name in listed.split(b"\0") if name and (top / os.fsdecode(name)).exists())],
                   cwd=top, check=True)
    shutil.copy(top / "Package.resolved", tree)  # SwiftPM leaves this file when it compiles
    shutil.copy(binary, tree / ".build/release/httpdnsd")
    (tree / "bin").mkdir()
    (tree / "bin/swift").write_text(SWIFT)
    (tree / "bin/swift").chmod(0o755)
    make(tree, "deb", "image-layer", **surroundings)
    made = [*(tree / ".build/deb").glob("httpdnsd_*.deb"), tree / ".build/image/root.tar", tree / ".build/httpdnsd.cdx.json"]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made}


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """Two folders whose paths differ in length."""
    place = tmp_path_factory.mktemp("packed")
    return place / "one", place / "two/in/another/place"


def test_two_packings_are_the_same(top, binary, trees):
    first = packed(top, binary, trees[0], umask=0o022, TZ="UTC")
    second = packed(top, binary, trees[1], umask=0o077, TZ="Asia/Shanghai", LC_ALL="C", USER="someone")
    assert len(first) == 3 and first == second


def test_no_word_of_the_builder_is_in_it(top, trees):
    """Neither the stripped binary nor the files beside it contain a path of the build."""
    with tarfile.open(trees[0] / ".build/image/root.tar") as layer:
        for member in layer:
            assert (member.mtime, member.uname, member.gname) == (TIME, "", ""), member.name
            if member.isfile() and not member.name.endswith((".so", ".crt")) and ".so." not in member.name:
                content = layer.extractfile(member).read()
                for named in (b"/usr/src/httpdnsd/.build/checkouts/", b"/usr/src/httpdnsd"):
                    content = content.replace(named, b"")
                assert str(top).encode() not in content and b"/checkouts/" not in content, member.name


def test_the_bill_of_materials_names_all_that_is_linked(top, binary, trees):
    bill = json.loads((trees[0] / ".build/httpdnsd.cdx.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    parts = {part["name"]: part for part in bill["components"]}
    assert len(parts) == len(bill["components"])
    pins = json.loads((top / "Package.resolved").read_text())["pins"]
    for pin in pins:
        part = parts.pop(pin["location"].rpartition("/")[2])
        assert part["version"] == pin["state"]["version"]
        assert part["pedigree"]["commits"] == [{"uid": pin["state"]["revision"]}]
    assert parts.pop("swift")["version"] == "6.3.1"
    for part in parts.values():
        installed = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", part["name"]], capture_output=True,
                                   text=True, check=True).stdout
        assert part["version"] == installed and part["purl"].startswith(f"pkg:deb/debian/{part['name']}@")
    # The binary's own headers are a source independent of the linker's list.
    needed = subprocess.run(["objdump", "--private-headers", binary], capture_output=True, text=True, check=True).stdout
    wanted = {"libssl.so.3": "libssl3", "libcrypto.so.3": "libssl3", "libnghttp2.so.14": "libnghttp2-14",
              "libgcc_s.so.1": "libgcc-s1",
              "libm.so.6": "libc6", "libc.so.6": "libc6", "ld-linux-x86-64.so.2": "libc6", "ld-linux-aarch64.so.1": "libc6"}
    names = {line.split()[1] for line in needed.splitlines() if line.split()[:1] == ["NEEDED"]}
    assert names and {wanted[name] for name in names} <= set(parts)
    assert "libsystemd0" in parts, "it is loaded under systemd"
    assert any(name.startswith("libstdc++-") for name in parts), "the C++ library is linked in"


def test_the_bill_of_materials_is_one(trees):
    """The bill is valid by CycloneDX's own schemas, with the identifiers of SPDX, and each part has its licence."""
    text = (trees[0] / ".build/httpdnsd.cdx.json").read_text()
    error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
    assert error is None, error
    parts = json.loads(text)["components"]
    assert all(len(part["licenses"]) == 1 for part in parts)
    expressions = {part["name"]: part["licenses"][0].get("expression") for part in parts}
    assert expressions["swift"] == "Apache-2.0 WITH Swift-exception"
    known = {"Apache-2.0", "MIT", "0BSD", "BSD-2-Clause", "BSD-3-Clause", "GPL-2.0-only", "GPL-3.0-or-later",
             "LGPL-2.1-or-later", "LicenseRef-public-domain", "Swift-exception", "GCC-exception-3.1"}
    for expression in filter(None, expressions.values()):
        assert set(re.split(" OR | WITH ", expression)) <= known, expression


def test_dist_has_sources_package_bill_and_digests(top, version):
    """Two runs of `make dist` give the same files of the committed sources."""
    digests = []
    for _ in range(2):
        subprocess.run(["make", "--no-print-directory", "dist"], cwd=top, check=True, capture_output=True)
        digests.append((top / ".build/dist/SHA256SUMS").read_text())
    assert digests[0] == digests[1]
    listed = {line.split()[1] for line in digests[0].splitlines()}
    assert {path.name for path in (top / ".build/dist").iterdir()} == listed | {"SHA256SUMS"}
    assert len(listed) == 3 and any(name.endswith(".deb") for name in listed) and "httpdnsd.cdx.json" in listed
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=top / ".build/dist", check=True)
    with tarfile.open(top / f".build/dist/httpdnsd-{version}.tar.gz") as archive:
        names = archive.getnames()
    assert {name.split("/")[0] for name in names} == {f"httpdnsd-{version}"}
    assert f"httpdnsd-{version}/Makefile" in names and f"httpdnsd-{version}/config/debian/control" in names
