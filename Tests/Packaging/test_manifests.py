"""The manifests: kubectl's output, compared with Kubernetes' own schema and with the daemon's settings."""

import base64
import ipaddress
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
import yaml

# The overlays that can be applied, each in a folder of its own.
OVERLAYS = ["application", "node", "node-local"]
# The first release in which a container can sleep before it ends, and the newest release with known schemas.
RELEASES = ["1.30", "1.37"]
TOKEN = "0123456789"
# The fields of PodMonitor (monitoring.coreos.com/v1) that are used here.
POD_MONITOR = {"spec": {"selector": {"matchLabels": None}, "podMetricsEndpoints": [{"port": None}]}}

each_overlay = pytest.mark.parametrize("overlay", OVERLAYS)


@pytest.fixture(scope="module")
def kubectl():
    """kubectl of the tests' Python packages, or of the machine."""
    path = os.pathsep.join([*(f"{folder}/bin" for folder in sys.path), os.environ["PATH"]])
    return shutil.which("kubectl", path=path) or pytest.skip("make container-test brings kubectl")


@pytest.fixture(scope="module")
def folder(top, tmp_path_factory):
    """A copy with the secrets that the manifests require, made by the commands in them."""
    copy = tmp_path_factory.mktemp("manifests") / "kubernetes"
    shutil.copytree(top / "config/container/kubernetes", copy)
    for overlay in OVERLAYS:
        (copy / overlay / "token").write_text(TOKEN)
    store = copy / "shared-cache"
    commands = re.findall(r"^#   (.*)$", (store / "kustomization.yaml").read_text(), re.MULTILINE)
    subprocess.run(["sh", "-ec", "\n".join(commands)], cwd=store, check=True)
    return copy


@pytest.fixture(scope="module")
def built(kubectl, folder, tmp_path_factory):
    """The documents of an overlay; if `whole`, with the components that it names in comments."""
    def build(overlay, whole=False):
        source = folder
        if whole:
            source = tmp_path_factory.mktemp("whole") / "kubernetes"
            shutil.copytree(folder, source)
            file = source / overlay / "kustomization.yaml"
            changed = re.sub(r"^#(components:|  - \.\./)", r"\1", file.read_text(), flags=re.MULTILINE)
            assert changed.count("  - ../metrics\n") == changed.count("  - ../shared-cache/client\n") == 1
            file.write_text(changed)
        done = subprocess.run([kubectl, "kustomize", source / overlay], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return list(yaml.safe_load_all(done.stdout))
    return build


@pytest.fixture(scope="module")
def schema():
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="make container-test brings it")

    def check(data, release):
        if data["kind"] == "PodMonitor":
            assert set(data) == {"apiVersion", "kind", "metadata", "spec"} and not foreign(data["spec"], POD_MONITOR["spec"])
        else:
            kubernetes_validate.validate(data, release, strict=True)
    return check


def foreign(given, known):
    """The unknown keys."""
    if isinstance(given, list):
        return [key for one in given for key in foreign(one, known[0])]
    if not isinstance(given, dict) or known is None:
        return []
    return [key for key in given if key not in known] + [
        inner for key in given if key in known for inner in foreign(given[key], known[key])]


def pod_of(documents):
    template, = (one["spec"]["template"] for one in documents if one["kind"] in ("DaemonSet", "Deployment"))
    return template


def daemon_of(pod):
    return next(one for one in pod.get("initContainers", []) + pod["containers"] if one["name"] == "httpdnsd")


def named(documents, kind, name):
    """The document to which a reference points."""
    found, = (one for one in documents if one["kind"] == kind and one["metadata"]["name"] == name)
    return found


def contents(documents, volume):
    """The files in a projected volume."""
    files = {}
    for source in volume["projected"]["sources"]:
        kind, = (key for key in source if key in ("configMap", "secret"))
        there = [one for one in documents if one["kind"].lower() == kind.lower()
                 and one["metadata"]["name"] == source[kind]["name"]]
        assert there or source[kind]["optional"]
        for one in there:
            for name, text in one["data"].items():
                files[name] = base64.b64decode(text).decode() if kind == "secret" else text
    return files


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("whole", [False, True], ids=["alone", "whole"])
@each_overlay
def test_kubernetes_takes_it(schema, built, overlay, whole, release):
    documents = built(overlay, whole)
    for document in documents:
        schema(document, release)
    workload = next(one for one in documents if one["kind"] in ("DaemonSet", "Deployment"))
    with pytest.raises(Exception, match="restartPolicies"):  # the schema check works
        workload["spec"]["template"]["spec"]["restartPolicies"] = "Always"
        schema(workload, release)


@pytest.mark.parametrize("release", RELEASES)
def test_kubernetes_takes_the_store(schema, built, release):
    for document in built("shared-cache"):
        schema(document, release)


@each_overlay
def test_without_a_token_nothing_is_made(top, kubectl, overlay):
    """No manifest holds a secret, so kustomize fails until there is a token."""
    there = top / "config/container/kubernetes" / overlay
    if (there / "token").exists():
        pytest.skip("there is a token")
    done = subprocess.run([kubectl, "kustomize", there], capture_output=True, text=True)
    assert done.returncode != 0 and "token" in done.stderr and not done.stdout


@pytest.mark.parametrize("whole", [False, True], ids=["alone", "whole"])
@each_overlay
def test_the_daemon_takes_its_settings(built, binary, tmp_path, overlay, whole):
    documents = built(overlay, whole)
    pod = pod_of(documents)["spec"]
    daemon = daemon_of(pod)
    mounts = {mount["name"]: mount["mountPath"] for mount in daemon["volumeMounts"]}
    assert mounts == {"httpdnsd": "/etc/httpdnsd", "control": "/run/httpdnsd"} and len(pod["volumes"]) == 2
    for name, text in contents(documents, pod["volumes"][0]).items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o440)
    assert (tmp_path / "token").read_text() == TOKEN
    variables = {one["name"]: one["value"] for one in daemon.get("env", [])}
    reference = daemon["envFrom"][0]["configMapRef"]
    if whole:
        variables |= named(documents, "ConfigMap", reference["name"])["data"]
    else:
        assert reference["optional"]
    done = subprocess.run([binary, "check", "--all", "-c", tmp_path / "httpdnsd.toml"], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert whole == ('server        = "redis://10.96.7.7' in done.stdout)
    assert done.stdout.count('"[::]:53"') == (overlay == "node")


def test_the_store_is_the_daemons_alone(built, folder):
    documents = built("shared-cache")
    kinds = {one["kind"]: one for one in documents}
    assert set(kinds) == {"Service", "StatefulSet", "Secret", "NetworkPolicy"} and len(documents) == 4
    client = built("node", whole=True)
    reference = daemon_of(pod_of(client)["spec"])["envFrom"][0]["configMapRef"]["name"]
    server = named(client, "ConfigMap", reference)["data"]["HTTPDNSD_SHAREDCACHE_SERVER"]
    assert server == f"redis://{kinds['Service']['spec']['clusterIP']}"
    policy, pod = kinds["NetworkPolicy"]["spec"], kinds["StatefulSet"]["spec"]["template"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert policy["egress"] == [] and set(policy["policyTypes"]) == {"Ingress", "Egress"}
    daemons = policy["ingress"][0]["from"][0]["podSelector"]["matchLabels"]
    assert daemons.items() <= pod_of(client)["metadata"]["labels"].items()
    assert pod["spec"]["automountServiceAccountToken"] is False
    security = pod["spec"]["containers"][0]["securityContext"]
    assert security["runAsNonRoot"] and security["readOnlyRootFilesystem"] and security["capabilities"] == {"drop": ["ALL"]}
    # The store has one user, with the required rights alone and the daemons' password.
    users, = (base64.b64decode(text).decode() for text in kinds["Secret"]["data"].values())
    password = (folder / "shared-cache/client/password").read_text().strip()
    assert users == f"user default off\nuser httpdnsd on >{password} ~h1:* +get +set +del\n"
    assert pod["spec"]["volumes"][0]["secret"]["secretName"] == kinds["Secret"]["metadata"]["name"]


def test_the_store_can_be_opened_to_daemons_in_the_networks_of_nodes(built, folder):
    """Selectors do not find such pods, so the policy has a line with the addresses of nodes, which the folders name."""
    assert pod_of(built("node-local"))["spec"]["hostNetwork"]
    store = (folder / "shared-cache/store.yaml").read_text().replace("#- ipBlock", "- ipBlock")
    policy, = (one["spec"] for one in yaml.safe_load_all(store) if one["kind"] == "NetworkPolicy")
    assert ipaddress.ip_network(policy["ingress"][0]["from"][-1]["ipBlock"]["cidr"]).is_private
    for overlay in ("node-local", "shared-cache"):
        assert "ipBlock" in (folder / overlay / "kustomization.yaml").read_text()


@each_overlay
def test_the_image_is_that_of_this_version(built, version, overlay):
    assert daemon_of(pod_of(built(overlay))["spec"])["image"] == f"registry.example/httpdnsd:{version}"


@each_overlay
def test_nothing_is_given_that_is_not_needed(built, overlay):
    pod = pod_of(built(overlay))["spec"]
    daemon = daemon_of(pod)
    security = daemon["securityContext"]
    assert security["readOnlyRootFilesystem"] and security["allowPrivilegeEscalation"] is False
    assert pod["automountServiceAccountToken"] is False
    sysctls = pod["securityContext"].get("sysctls", [])
    if overlay == "node-local":
        # The node's network has no such sysctl, and only root gets a capability.
        assert pod["hostNetwork"] and sysctls == []
        assert security["runAsUser"] == 0 and security["capabilities"] == {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}
        assert pod["initContainers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}
    else:
        # The pod's own network permits port 53 without a capability.
        assert "hostNetwork" not in pod and sysctls == [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "53"}]
        assert security["runAsNonRoot"] and security["runAsUser"] == 65532 and security["capabilities"] == {"drop": ["ALL"]}
    # Variables of a Service called httpdnsd-something do not reach the daemon.
    assert pod["enableServiceLinks"] is False
    # Only the daemon reads the secret's files.
    assert pod["volumes"][0]["projected"]["defaultMode"] == 0o440
    assert pod["securityContext"]["fsGroup"] == security["runAsGroup"]
    # Probes use the control socket, which no client outside the container can keep busy.
    probes = {name: daemon[name]["exec"]["command"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert probes == {"startupProbe": ["/usr/sbin/httpdnsd", "status", "--ready"],
                      "readinessProbe": ["/usr/sbin/httpdnsd", "status", "--ready"],
                      "livenessProbe": ["/usr/sbin/httpdnsd", "status", "--alive"]}


def test_the_sidecar_starts_first_and_its_pod_asks_it(built):
    pod = pod_of(built("application"))["spec"]
    assert [(one["name"], one["restartPolicy"]) for one in pod["initContainers"]] == [("httpdnsd", "Always")]
    assert [one["name"] for one in pod["containers"]] == ["application"]
    assert pod["dnsPolicy"] == "None"
    assert pod["dnsConfig"]["nameservers"] == ["127.0.0.1"]
    assert {"name": "ndots", "value": "2"} in pod["dnsConfig"]["options"]


@pytest.mark.parametrize("overlay", ["node", "node-local"])
def test_the_daemon_of_a_node_does_not_ask_itself(built, overlay):
    documents = built(overlay)
    pod = pod_of(documents)["spec"]
    assert pod["dnsPolicy"] == "Default"
    services = [one["spec"] for one in documents if one["kind"] == "Service"]
    assert len(services) == (overlay == "node")
    ports = {port["name"] for port in daemon_of(pod)["ports"]}
    for service in services:
        assert service["internalTrafficPolicy"] == "Local" and service["ipFamilyPolicy"] == "PreferDualStack"
        assert {port["targetPort"] for port in service["ports"]} <= ports


def test_an_upgrade_leaves_no_gap_where_two_daemons_can_be_there_at_once(built):
    """A pod's own network permits two daemons at once; in the node's network, the port is free only after the old one ends."""
    updates = {overlay: next(one for one in built(overlay) if one["kind"] == "DaemonSet")["spec"]["updateStrategy"]["rollingUpdate"]
               for overlay in ("node", "node-local")}
    assert updates == {"node": {"maxSurge": 1, "maxUnavailable": 0}, "node-local": {"maxSurge": 0, "maxUnavailable": 1}}
    pod = pod_of(built("node"))["spec"]
    # The daemon gives its clients four seconds when it is told to end.
    assert 0 < daemon_of(pod)["lifecycle"]["preStop"]["sleep"]["seconds"] <= pod["terminationGracePeriodSeconds"] - 4


def test_the_address_of_the_node_is_made_once(built):
    """The shell commands of the manifest, run twice in a network of their own, make the address once."""
    documents = built("node-local")
    pod = pod_of(documents)["spec"]
    script = pod["initContainers"][0]["command"][-1]
    done = subprocess.run(["unshare", "--net", "sh", "-ec", f"{script}\n{script}\nip -brief address show dev lo"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("169.254.20.10/32") == 1, done
    address, = (one["value"] for one in daemon_of(pod)["env"])
    assert address == "169.254.20.10:53"
    # Programs of the node, and pods in its network, ask from that address.
    settings, = (one["data"]["httpdnsd.toml"] for one in documents if one["kind"] == "ConfigMap")
    assert "169.254.20.10/32" in tomllib.loads(settings)["listen"]["allow"]


@each_overlay
def test_the_metrics_are_for_prometheus(built, overlay):
    documents = built(overlay, whole=True)
    pod = pod_of(documents)
    monitor, = (one["spec"] for one in documents if one["kind"] == "PodMonitor")
    policy, = (one["spec"] for one in documents if one["kind"] == "NetworkPolicy")
    for selector in (monitor["selector"], policy["podSelector"]):
        assert selector["matchLabels"].items() <= pod["metadata"]["labels"].items()
    ports = {port["name"]: port["containerPort"] for port in daemon_of(pod["spec"])["ports"]}
    number = ports[monitor["podMetricsEndpoints"][0]["port"]]
    rest, metrics = policy["ingress"]
    assert "from" not in rest and [(port["port"], port["endPort"]) for port in rest["ports"] if "port" in port] == [
        (1, number - 1), (number + 1, 65535)]
    assert metrics["ports"] == [{"protocol": "TCP", "port": number}] and metrics["from"]


# MARK: Docker Compose

def compose(top, file):
    return yaml.safe_load((top / "config/container" / file).read_text())


def environment(daemon, folder, variables=()):
    """The environment of a service over these variables; the files that it names are made in a folder."""
    certificate = [str(folder / name) for name in ("server.pem", "server.key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=dns",
                    "-out", certificate[0], "-keyout", certificate[1]], check=True, capture_output=True)
    variables = dict(variables) | daemon["environment"]
    for variable, path in variables.items():
        if variable.startswith("HTTPDNSD_LISTEN_") and variable.endswith("FILE"):
            assert path.startswith("/certificate/") and daemon["volumes"] == ["./certificate:/certificate:ro"]
            variables[variable] = certificate["KEY" in variable]
        elif variable.endswith("FILE"):
            assert path.removeprefix("/run/secrets/") in daemon["secrets"]
            variables[variable] = str(folder / variable)
            pathlib.Path(variables[variable]).write_text("0123456789abcdef0123456789abcdef")
    return variables


@pytest.mark.parametrize("files", [["compose.yaml"], ["compose.yaml", "compose.shared-cache.yaml"], ["compose.clients.yaml"]],
                         ids=["alone", "shared", "clients"])
def test_the_daemon_takes_the_environment_of_compose(top, binary, tmp_path, files):
    first, last = (compose(top, file)["services"]["httpdnsd"] for file in (files[0], files[-1]))
    variables = environment(last, tmp_path, first["environment"])
    done = subprocess.run([binary, "check", "--all"], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ("/run/valkey/valkey.sock" in done.stdout) == (len(files) == 2)


@pytest.mark.parametrize("file", ["compose.yaml", "compose.clients.yaml"])
def test_the_image_of_compose_is_that_of_this_version(top, version, file):
    daemon = compose(top, file)["services"]["httpdnsd"]
    assert daemon["image"] == f"httpdnsd:{version}"
    assert daemon["read_only"] and daemon["cap_drop"] == ["ALL"] and daemon["cap_add"] == ["NET_BIND_SERVICE"]


def test_the_daemon_for_clients_gets_its_ports_by_what_docker_gives_in_the_network_of_the_host(top, binary, tmp_path):
    """Docker gives a user other than root no capability but in the bounding set; ports below 1024 take one there."""
    daemon = compose(top, "compose.clients.yaml")["services"]["httpdnsd"]
    assert daemon["network_mode"] == "host"
    user, group = daemon["user"].split(":")
    script = """ip link set lo up; exec setpriv --reuid=$1 --regid=$2 --clear-groups --bounding-set=-all,+net_bind_service \\
        --inh-caps=-all --ambient-caps=-all --no-new-privs "$3" run"""
    variables = environment(daemon, tmp_path) | {"HTTPDNSD_LISTEN_ADDRESSES": "127.0.0.1:53", "HTTPDNSD_CONTROL_SOCKET": "",
                                                 "PATH": os.environ["PATH"]}
    process = subprocess.Popen(["unshare", "--net", "sh", "-c", script, "sh", user, group, binary], env=variables,
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = []
    for line in process.stderr:
        said.append(line)
        if "listening on" in line:
            break
    process.kill()
    process.communicate()
    assert said and "listening on" in said[-1], said


def test_compose_gives_the_application_and_the_sidecar_one_network(top):
    """The network belongs to a third service, so it stays when the sidecar restarts."""
    services = compose(top, "compose.yaml")["services"]
    application = services["application"]
    assert application["network_mode"] == services["httpdnsd"]["network_mode"] == "service:network"
    assert "network_mode" not in services["network"] and services["network"]["restart"] == "unless-stopped"
    assert application["depends_on"] == {"httpdnsd": {"condition": "service_healthy"}}
    assert application["volumes"] == ["./resolv.conf:/etc/resolv.conf:ro"]
    assert "nameserver 127.0.0.1\n" in (top / "config/container/resolv.conf").read_text()
