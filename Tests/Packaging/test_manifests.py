"""The manifests: against Kubernetes' own schema, and against what the daemon takes."""

import re
import subprocess

import pytest
import yaml

MANIFESTS = ["kubernetes/sidecar.yaml", "kubernetes/daemonset.yaml"]
# The first with sidecars that need no switch, and the newest the schemas are known of.
RELEASES = ["1.29", "1.37"]
STORE = "kubernetes/shared-cache.yaml"
# What the manifests become with a shared cache, by the patch for each.
SHARED = {"kubernetes/sidecar.yaml": "kubernetes/shared-cache-sidecar.yaml",
          "kubernetes/daemonset.yaml": "kubernetes/shared-cache-daemonset.yaml", "compose.yaml": "compose.shared-cache.yaml"}
SECRETS = {"/etc/httpdnsd/credentials/token", "/run/secrets/httpdns-token"}


def documents(top, manifest):
    return list(yaml.safe_load_all((top / "config/container" / manifest).read_text()))


def merged(base, patch):
    """As `kubectl patch` does it: objects key by key, lists of objects by the name of each, or by its place."""
    if isinstance(base, dict) and isinstance(patch, dict):
        return base | {key: merged(base[key], value) if key in base else value for key, value in patch.items()}
    if isinstance(base, list) and isinstance(patch, list) and all(isinstance(one, dict) for one in base + patch):
        result = list(base)
        for one in patch:
            key = "mountPath" if "mountPath" in one else "name"
            places = [place for place, other in enumerate(result) if other[key] == one[key]]
            if places:
                result[places[0]] = merged(result[places[0]], one)
            else:
                result.append(one)
        return result
    return patch


def shared(top, manifest):
    """The documents of a manifest with its patch for a shared cache."""
    patch, = documents(top, SHARED[manifest])
    return [merged(one, patch) if manifest == "compose.yaml" or "template" in one.get("spec", {}) else one
            for one in documents(top, manifest)]


def pods(top, manifest):
    return [one["spec"]["template"]["spec"] for one in documents(top, manifest) if "template" in one.get("spec", {})]


def daemon_of(pod):
    return next(one for one in pod.get("initContainers", []) + pod["containers"] if one["name"] == "httpdnsd")


@pytest.fixture(scope="module")
def schema(top):
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="make container-test brings it")
    return lambda data, release: kubernetes_validate.validate(data, release, strict=True)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("manifest", MANIFESTS)
def test_kubernetes_takes_it(top, schema, manifest, release):
    for document in documents(top, manifest):
        schema(document, release)
    with pytest.raises(Exception, match="restartPolicies"):  # the schema does look
        document["spec"]["template"]["spec"]["restartPolicies"] = "Always"
        schema(document, release)


@pytest.mark.parametrize("release", RELEASES)
def test_kubernetes_takes_the_shared_cache(top, schema, release):
    for document in documents(top, STORE) + [one for manifest in MANIFESTS for one in shared(top, manifest)]:
        schema(document, release)


def test_the_key_that_stands_there_is_refused(top, binary, tmp_path):
    secret = next(one for one in documents(top, STORE) if one["metadata"]["name"] == "httpdnsd-shared-cache")["stringData"]
    (tmp_path / "key").write_text(secret["key"])
    variables = {"HTTPDNSD_SHAREDCACHE_SERVER": "redis://192.0.2.1", "HTTPDNSD_SHAREDCACHE_KEYFILE": str(tmp_path / "key")}
    done = subprocess.run([binary, "check", "--all"], env=variables, capture_output=True, text=True)
    assert done.returncode == 78 and "give 32 or more" in done.stderr, done


@pytest.mark.parametrize("manifest", SHARED)
def test_the_daemon_takes_the_shared_cache(top, binary, tmp_path, manifest):
    whole = shared(top, manifest)
    if manifest == "compose.yaml":
        variables = whole[0]["services"]["httpdnsd"]["environment"]
    else:
        pod, = (one["spec"]["template"]["spec"] for one in whole if "template" in one.get("spec", {}))
        daemon = daemon_of(pod)
        variables = {one["name"]: one["value"] for one in daemon["env"]}
        assert variables["HTTPDNSD_SHAREDCACHE_KEYFILE"] == "/etc/httpdnsd/shared-cache/key"
        assert {mount["name"] for mount in daemon["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    store = documents(top, STORE)
    secret = next(one for one in store if one["metadata"]["name"] == "httpdnsd-shared-cache")["stringData"]
    secret |= {"key": "0123456789abcdef0123456789abcdef"}  # as the comment there asks for
    for variable in ("HTTPDNSD_HTTPDNS_TOKENFILE", "HTTPDNSD_SHAREDCACHE_KEYFILE", "HTTPDNSD_SHAREDCACHE_PASSWORDFILE"):
        if variable in variables:
            variables[variable] = str(tmp_path / variable)
            name = variables[variable] and variable.removeprefix("HTTPDNSD_SHAREDCACHE_").removesuffix("FILE").lower()
            (tmp_path / variable).write_text(secret.get(name, "0123456789"))
    done = subprocess.run([binary, "check", "--all"], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f'server        = "{variables["HTTPDNSD_SHAREDCACHE_SERVER"]}' in done.stdout


def test_the_store_is_the_daemons_alone(top):
    kinds = {one["kind"]: one for one in documents(top, STORE) if one["kind"] != "Secret"}
    address = kinds["Service"]["spec"]["clusterIP"]
    for patch in ("kubernetes/shared-cache-sidecar.yaml", "kubernetes/shared-cache-daemonset.yaml"):
        assert f"redis://{address}\n" in (top / "config/container" / patch).read_text()
    policy, pod = kinds["NetworkPolicy"]["spec"], kinds["StatefulSet"]["spec"]["template"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert policy["egress"] == [] and set(policy["policyTypes"]) == {"Ingress", "Egress"}
    security = pod["spec"]["containers"][0]["securityContext"]
    assert security["runAsNonRoot"] and security["readOnlyRootFilesystem"] and security["capabilities"] == {"drop": ["ALL"]}
    users = next(one for one in documents(top, STORE) if one["metadata"]["name"].endswith("-users"))["stringData"]
    assert "~h1:* +get +set +del" in users["users.acl"] and "user default off" in users["users.acl"]


@pytest.mark.parametrize("manifest", [*MANIFESTS, "compose.yaml"])
def test_the_daemon_takes_its_environment(top, binary, tmp_path, manifest):
    if manifest == "compose.yaml":
        variables = documents(top, manifest)[0]["services"]["httpdnsd"]["environment"]
    else:
        variables = {one["name"]: one["value"] for one in daemon_of(pods(top, manifest)[0])["env"]}
    assert variables["HTTPDNSD_HTTPDNS_TOKENFILE"] in SECRETS
    token = tmp_path / "token"
    token.write_text("0123456789")
    done = subprocess.run([binary, "check", "--all"], env=variables | {"HTTPDNSD_HTTPDNS_TOKENFILE": str(token)},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("manifest", [*MANIFESTS, "compose.yaml"])
def test_the_image_is_that_of_this_version(top, version, manifest):
    images = re.findall(r"image: \S*httpdnsd:(\S+)", (top / "config/container" / manifest).read_text())
    assert images == [version]


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_nothing_is_given_that_is_not_needed(top, manifest):
    pod, = pods(top, manifest)
    daemon = daemon_of(pod)
    security = daemon["securityContext"]
    assert security["runAsNonRoot"] and security["runAsUser"] == 65532 and security["readOnlyRootFilesystem"]
    assert security["allowPrivilegeEscalation"] is False and security["capabilities"] == {"drop": ["ALL"]}
    assert "hostNetwork" not in pod
    # A Service called httpdnsd-something gives its variables to nobody.
    assert pod["enableServiceLinks"] is False
    # The secret's files are for the daemon alone.
    secret, = (volume["secret"] for volume in pod["volumes"] if "secret" in volume)
    assert secret["defaultMode"] == 0o440 and pod["securityContext"]["fsGroup"] == security["runAsGroup"]
    # Port 53 without the capability is what the pod's own network allows.
    assert {"name": "net.ipv4.ip_unprivileged_port_start", "value": "53"} in pod["securityContext"]["sysctls"]
    # Over the control socket, which nobody outside the container can keep busy.
    probes = {name: daemon[name]["exec"]["command"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert probes == {"startupProbe": ["/usr/sbin/httpdnsd", "status", "--ready"],
                      "readinessProbe": ["/usr/sbin/httpdnsd", "status", "--ready"],
                      "livenessProbe": ["/usr/sbin/httpdnsd", "status", "--alive"]}
    mounted = {mount["mountPath"] for mount in daemon["volumeMounts"]}
    assert mounted == {"/etc/httpdnsd/credentials", "/run/httpdnsd"}
    assert {mount["name"] for mount in daemon["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def test_the_sidecar_starts_first_and_its_pod_asks_it(top):
    pod, = pods(top, "kubernetes/sidecar.yaml")
    assert [one["restartPolicy"] for one in pod["initContainers"]] == ["Always"]
    assert pod["dnsPolicy"] == "None"
    assert pod["dnsConfig"]["nameservers"] == ["127.0.0.1"]
    assert {"name": "ndots", "value": "2"} in pod["dnsConfig"]["options"]


def test_the_daemon_of_a_node_does_not_ask_itself(top):
    pod, = pods(top, "kubernetes/daemonset.yaml")
    assert pod["dnsPolicy"] == "Default"
    service = next(one for one in documents(top, "kubernetes/daemonset.yaml") if one["kind"] == "Service")
    assert service["spec"]["internalTrafficPolicy"] == "Local"
    ports = {port["name"] for port in daemon_of(pod)["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


def test_compose_gives_the_application_the_sidecars_network(top):
    services = documents(top, "compose.yaml")[0]["services"]
    application, sidecar = services["application"], services["httpdnsd"]
    assert application["network_mode"] == "service:httpdnsd"
    assert application["depends_on"] == {"httpdnsd": {"condition": "service_healthy"}}
    assert application["volumes"] == ["./resolv.conf:/etc/resolv.conf:ro"]
    assert "nameserver 127.0.0.1\n" in (top / "config/container/resolv.conf").read_text()
    assert sidecar["read_only"] and sidecar["cap_drop"] == ["ALL"] and sidecar["cap_add"] == ["NET_BIND_SERVICE"]
