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


def told(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def library(name, version, purl, **more):
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl} | more


def packages():
    """Swift packages, which are linked in."""
    for pin in json.loads(pathlib.Path("Package.resolved").read_text())["pins"]:
        place, state = pin["location"].removesuffix(".git"), pin["state"]
        purl = f"pkg:swift/{place.removeprefix('https://')}@{state['version']}"
        yield library(place.rpartition("/")[2], state["version"], purl,
                      externalReferences=[{"type": "vcs", "url": pin["location"]}],
                      pedigree={"commits": [{"uid": state["revision"]}]})


def swift():
    """Swift's own libraries, which are linked in: the standard library, concurrency, Dispatch and Foundation."""
    version = re.search(r"Swift version (\S+)", told("swift", "--version")).group(1)
    return library("swift", version, f"pkg:github/swiftlang/swift@swift-{version}-RELEASE",
                   externalReferences=[{"type": "website", "url": "https://www.swift.org"}])


def shared(binary):
    """The system's libraries that it links with, and those that these link with, by Debian package."""
    for path in sorted(set(re.findall(r"(/\S+) \(0x", told("ldd", str(binary))))):
        # A package may name its file below /usr or, as long as those are one folder, beside it.
        places = {path, f"/usr{path}", path.removeprefix("/usr"), str(pathlib.Path(path).resolve())}
        done = subprocess.run(["dpkg", "--search", *sorted(places)], capture_output=True, text=True)
        owners = {line.split(":")[0] for line in done.stdout.splitlines() if not line.startswith("diversion ")}
        if not owners:
            raise SystemExit(f"sbom: no Debian package has {path}")
        for owner in owners:
            form = "${Version} ${Architecture} ${source:Package} ${source:Version}\n"
            version, architecture, source, of_source = told("dpkg-query", "--show", f"--showformat={form}", owner).split()
            quoted = urllib.parse.quote(version, safe="~")
            yield library(owner, version, f"pkg:deb/debian/{owner}@{quoted}?arch={architecture}",
                          properties=[{"name": "debian:source", "value": f"{source} {of_source}"}])


def main(binary, version, seconds):
    parts = {part["bom-ref"]: part for part in [*packages(), swift(), *shared(binary)]}
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
