"""Prints a bill of materials of a built httpdnsd: what is linked into it and what it links with, in CycloneDX's form.

    python3 config/sbom.py BINARY VERSION SECONDS

Run at the top of the sources. SECONDS since 1970 are the time of what was built. The same state of sources and libraries
gives the same text.
"""

import datetime
import json
import pathlib
import re
import subprocess
import sys
import urllib.parse


# By Swift package, or by Debian's source package without the number of a compiler. A part whose licence is not known here
# belongs to no release.
LICENCES = {
    "swift": "Apache-2.0 WITH Swift-exception", "swift-argument-parser": "Apache-2.0 WITH Swift-exception",
    "gcc": "GPL-3.0-or-later WITH GCC-exception-3.1", "glibc": "LGPL-2.1-or-later", "libcap2": "BSD-3-Clause OR GPL-2.0-only",
    "libgcrypt20": "LGPL-2.1-or-later", "libgpg-error": "LGPL-2.1-or-later", "libzstd": "BSD-3-Clause OR GPL-2.0-only",
    "lz4": "BSD-2-Clause", "nghttp2": "MIT", "openssl": "Apache-2.0", "systemd": "LGPL-2.1-or-later", "xz-utils": "0BSD"}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def licence(source, version):
    source = re.sub(r"-[0-9]+$", "", source)
    if source not in LICENCES:
        raise SystemExit(f"sbom: no licence is known of {source}")
    # XZ Utils had been in the public domain before.
    text = "LicenseRef-public-domain" if source == "xz-utils" and version.startswith(("5.2", "5.4")) else LICENCES[source]
    return {"expression": text} if " " in text or "Ref-" in text else {"license": {"id": text}}


def library(name, version, purl, *, source=None, **more):
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
            "licenses": [licence(source or name, version)]} | more


def packages():
    """Swift packages, which are linked in."""
    for pin in json.loads(pathlib.Path("Package.resolved").read_text())["pins"]:
        place, state = pin["location"].removesuffix(".git"), pin["state"]
        purl = f"pkg:swift/{place.removeprefix('https://')}@{state['version']}"
        name = place.rpartition("/")[2]
        yield library(name, state["version"], purl, externalReferences=[{"type": "vcs", "url": pin["location"]}],
                      pedigree={"commits": [{"uid": state["revision"]}]})


def swift():
    """Swift's own libraries, which are linked in: the standard library, concurrency, Dispatch and Foundation."""
    version = re.search(r"Swift version (\S+)", output("swift", "--version")).group(1)
    return library("swift", version, f"pkg:github/swiftlang/swift@swift-{version}-RELEASE",
                   externalReferences=[{"type": "website", "url": "https://www.swift.org"}])


def of_the_system(binary):
    """By Debian package: the libraries that it links with, libsystemd, which it loads under systemd, those that these link with,
    and the C++ library, which is linked in."""
    systemd, cxx = (output("gcc", f"-print-file-name={name}").strip() for name in ("libsystemd.so.0", "libstdc++.a"))
    linked = {path for one in (str(binary), systemd) for path in re.findall(r"(/\S+) \(0x", output("ldd", one))}
    for path in sorted(linked | {systemd, cxx}):
        # A package may name its file below /usr or, as long as those are one folder, beside it.
        places = {path, f"/usr{path}", path.removeprefix("/usr"), str(pathlib.Path(path).resolve())}
        done = subprocess.run(["dpkg", "--search", *sorted(places)], capture_output=True, text=True)
        owners = {line.split(":")[0] for line in done.stdout.splitlines() if not line.startswith("diversion ")}
        if not owners:
            raise SystemExit(f"sbom: no Debian package has {path}")
        for owner in owners:
            form = "${Version} ${Architecture} ${source:Package} ${source:Version}\n"
            version, architecture, source, of_source = output("dpkg-query", "--show", f"--showformat={form}", owner).split()
            quoted = urllib.parse.quote(version, safe="~")
            yield library(owner, version, f"pkg:deb/debian/{owner}@{quoted}?arch={architecture}", source=source,
                          properties=[{"name": "debian:source", "value": f"{source} {of_source}"}])


def main(binary, version, seconds):
    parts = {part["bom-ref"]: part for part in [*packages(), swift(), *of_the_system(binary)]}
    time = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
    itself = f"pkg:generic/httpdnsd@{version}"
    print(json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": {
            "type": "application", "bom-ref": itself, "name": "httpdnsd", "version": version, "purl": itself,
            "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": [parts[reference] for reference in sorted(parts)],
        "dependencies": [{"ref": itself, "dependsOn": sorted(parts)}]}, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
