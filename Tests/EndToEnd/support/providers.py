"""HTTPDNS services of providers other than Tencent, from their documents alone: each checks signature, time and limits."""

import base64
import hashlib
import hmac
import json
import time
from email.utils import formatdate
from urllib.parse import parse_qsl

from httpdns_service import AES, LABEL, HTTPDNSService, Record, Request

LONGEST = {"alibaba": 86400, "alibaba-v1": 86400, "volcengine": 86400, "baidu": 86400}
NAMES = {"alibaba": 5, "alibaba-v1": 5, "volcengine": 1, "baidu": 10}
SECRETS = {"alibaba": "00112233445566778899aabbccddeeff", "alibaba-v1": "IAmASecret", "volcengine": "QlgAuFMwNUwN",
           "baidu": "1234567890"}
CERTIFICATES = {"alibaba": "resolvers.httpdns.aliyuncs.com", "alibaba-v1": "resolvers.httpdns.aliyuncs.com",
                "volcengine": "httpdns.volcengineapi.com", "baidu": "httpdns.baidubce.com"}
AES_KEY = "000102030405060708090a0b0c0d0e0f"


class Refused(Exception):
    """A refusal of the service: a status, and its code."""

    def __init__(self, status, code):
        super().__init__(code)
        self.status, self.code = status, code


class HexAES(AES):
    """AES with a key in hexadecimal."""

    def __init__(self, key):
        self.key = bytes.fromhex(key)


class ProviderService(HTTPDNSService):
    """One provider's service. `skew`: how many seconds its clock is ahead of this machine's. `refusal`: None, or
    `Refused`, or a function of a `Request` that gives either. `listed`: the addresses of its start-up list."""

    def __init__(self, provider, zone, *, encryption="https", skew=0, account=139450, listed=(), **options):
        super().__init__("https", zone, **options)
        self.provider, self.way, self.skew, self.account, self.listed = provider, encryption, skew, account, listed
        self.secret = SECRETS[provider]
        self.refusal = None
        self.refused = []  # the codes of refused requests
        self.list_requests = []
        self.sessions = []  # the `sid` of each request that has one
        self.says_the_time = True

    def settings(self):
        """The keys of a daemon's account that uses this service."""
        keys = {"provider": self.provider, "dnsId": self.account, "dnsKey": self.secret, "dnsIp": [self.endpoint],
                "timeout": 3000}
        return keys | ({"encryptType": "aes", "aesKey": AES_KEY} if self.way == "aes" else {})

    @property
    def now(self):
        return time.time() + self.skew

    def _answer(self, connection, number, head):
        lines = head.split("\r\n")
        method, target, version, headers = self._read_head(lines)
        if (method, version) != ("GET", "HTTP/1.1") or "host" not in headers or self.secret in head:
            self._violation(f"not a GET with a Host and without the secret: {lines[0]!r}")
        path, _, query = target.partition("?")
        pairs = parse_qsl(query, keep_blank_values=True, separator="&")
        parameters = dict(pairs)
        if len(parameters) != len(pairs) or "" in parameters.values():
            self._violation(f"a parameter twice, or empty: {target}")
        try:
            status, answer = self._serve_path(path, parameters, number)
        except Refused as refused:
            self.refused.append(refused.code)
            key = "msg" if self.provider == "baidu" else "code"
            status, answer = refused.status, {key: refused.code}
            if self.provider == "baidu":
                answer["timestamp"] = int(self.now)
        body = json.dumps(answer).encode()
        date = f"Date: {formatdate(self.now, usegmt=True)}\r\n" if self.says_the_time else ""
        connection.sendall(f"HTTP/1.1 {status} Status\r\n{date}Content-Type: application/json\r\n"
                           f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return True

    def _serve_path(self, path, parameters, number):
        lists = {"alibaba": f"/{self.account}/ss", "alibaba-v1": f"/{self.account}/ss", "volcengine": "/svc_meta"}
        if path == lists.get(self.provider):
            return 200, self._list(parameters)
        names, kind, expiry = PROTOCOLS[self.provider](self, path, parameters)
        if parameters.pop("alt_server_ip", None) == "true":
            self.list_requests.append(parameters)
            return 200, {"msg": "ok", "data": {name: {} for name in names}, "serverip": {
                "ipv4": [one for one in self.listed if ":" not in one],
                "ipv6": [one for one in self.listed if ":" in one]}}
        request = Request(names, kind, parameters, number, time.monotonic(), expiry)
        if len(names) > NAMES[self.provider]:
            raise Refused(400, "TooManyHosts")
        for name in names:
            if len(name) > 253 or not all(part and len(part) <= 63 and set(part) <= LABEL for part in name.split(".")):
                self._violation(f"not a lower-case host name: {name!r}")
                raise Refused(400, "InvalidHost")
        if len(set(names)) != len(names):
            self._violation(f"a name twice: {names}")
        with self._lock:
            self.requests.append(request)
        refusal = self.refusal(request) if callable(self.refusal) else self.refusal
        if refusal:
            raise refusal
        self._gate.wait(30)
        return 200, ANSWERS[self.provider](self, request)

    def check_time(self, expiry):
        if not expiry.isdigit() or len(expiry) != 10:
            raise Refused(400, "MissingArgument")
        if int(expiry) < self.now:
            raise Refused(403, "SignatureExpired")
        if int(expiry) > self.now + LONGEST[self.provider]:
            raise Refused(403, "InvalidDuration")
        return int(expiry)

    def _list(self, parameters):
        self.list_requests.append(parameters)
        if self.provider == "volcengine":
            signed = {"account_id": parameters["account_id"], "svc_meta_ts": parameters["svc_meta_ts"],
                      "timestamp": parameters["timestamp"]}
            compare(parameters["sign"], sorted_digest([*signed.values(), self.secret]))
            return {"svc_meta": {"main_domains": list(self.listed), "backup_domains": []}, "ts": 1,
                    "update_interval_min": 30}
        nonce, expiry = parameters["n"], self.check_time(parameters["t"])
        if not 8 <= len(nonce) <= 16 or not 25 <= expiry - self.now <= 305:
            self._violation(f"/ss with {parameters}")
        compare(parameters["s"], digest(f"{nonce}-{self.secret}-{expiry}"))
        return {"service_ip": [one for one in self.listed if ":" not in one],
                "service_ipv6": [one for one in self.listed if ":" in one]}

    def record(self, name, request):
        return self.zone(name, request) if callable(self.zone) else self.zone.get(name, Record())


def digest(text):
    return hashlib.md5(text.encode()).hexdigest()  # noqa: S324 (the providers' choice)


def sorted_digest(values):
    return digest("_".join(sorted(values)))


def hmac_digest(secret, parameters):
    text = "&".join(f"{key}={value}" for key, value in sorted(parameters.items()))
    return hmac.new(bytes.fromhex(secret), text.encode(), "sha256").hexdigest()


def compare(given, right):
    if given != right:
        raise Refused(403, "InvalidSignature")


def need(parameters, *names):
    if not set(names) <= set(parameters):
        raise Refused(400, "MissingArgument")


def alibaba(service, path, parameters):
    if path != "/v2/d":
        raise Refused(400, "MissingArgument")
    mode = {"https": "0", "aes": "1"}[service.way]
    need(parameters, "id", "m", "exp", "v", "s", *(["dn"] if mode == "0" else ["enc"]))
    signature = parameters.pop("s")
    if "sid" in parameters:
        service.sessions.append(parameters.pop("sid"))
    compare(signature, hmac_digest(service.secret, parameters))
    if parameters["id"] != str(service.account) or parameters["m"] != mode or parameters["v"] != "1.0":
        raise Refused(403, "InvalidAccount")
    expiry = service.check_time(parameters["exp"])
    if mode == "1":
        if set(parameters) != {"enc", "exp", "id", "m", "v"}:
            service._violation(f"beside what is encrypted: {parameters}")
        try:
            parameters = json.loads(HexAES(AES_KEY).decrypt(parameters["enc"]))
        except ValueError:  # another key
            raise Refused(400, "MissingArgument") from None
    if parameters["q"] not in ("4", "6", "4,6"):
        raise Refused(400, "MissingArgument")
    return parameters["dn"].split(","), parameters["q"], expiry


def alibaba_answer(service, request):
    answers = []
    for name in request.names:
        record = service.record(name, request)
        answer = {"dn": name}
        for digit, key, ips in (("4", "v4", record.v4), ("6", "v6", record.v6)):
            if digit in request.kind:
                answer[key] = {"ips": ips, "ttl": record.ttl if ips else 300, "extra": "&quot;x&quot;"}
                if not ips:
                    answer[key]["no_ip_code"] = "NODATA"
        answers.append(answer)
    data = {"cip": "203.0.113.7", "answers": answers}
    if service.way == "aes":
        encrypted = bytes.fromhex(HexAES(AES_KEY).encrypt(json.dumps(data)))
        return {"code": "success", "mode": 1, "data": base64.b64encode(encrypted).decode()}
    return {"code": "success", "mode": 0, "data": data}


def alibaba_v1(service, path, parameters):
    start = f"/{service.account}/sign_"
    if not path.startswith("/" + str(service.account) + "/"):
        raise Refused(403, "InvalidAccount")
    if path not in (start + "d", start + "resolve"):
        raise Refused(403, "UnsignedInterfaceDisabled")
    need(parameters, "host", "t", "s")
    expiry = service.check_time(parameters["t"])
    compare(parameters["s"], digest(f"{parameters['host']}-{service.secret}-{parameters['t']}"))
    names = parameters["host"].split(",")
    if path.endswith("sign_d") and len(names) != 1 or parameters.get("query", "4") not in ("4", "6", "4,6"):
        raise Refused(400, "InvalidHost")
    return names, parameters.get("query", "4"), expiry


def alibaba_v1_answer(service, request):
    answers = []
    for name in request.names:
        record = service.record(name, request)
        answer = {"host": name, "ttl": record.ttl, "origin_ttl": record.ttl, "client_ip": "203.0.113.7", "extra": "{}",
                  "ips": record.v4 if "4" in request.kind else []}
        if len(request.names) == 1:
            answers.append(answer | {"ipsv6": record.v6 if "6" in request.kind else []})
            continue
        answers.append(answer | {"type": 1})
        if "6" in request.kind and record.v6:
            answers.append(answer | {"type": 28, "ips": record.v6})
    return answers[0] if len(request.names) == 1 else {"dns": answers}


def volcengine(service, path, parameters):
    if path != "/resolve":
        raise Refused(405, "MethodNotAllowed")
    need(parameters, "domain", "account_id", "sign", "timestamp")
    if parameters["account_id"] != str(service.account):
        raise Refused(403, "AccountNotExists")
    values = [parameters.get(key, "") for key in ("account_id", "timestamp", "ip", "type", "domain")]
    compare(parameters["sign"], sorted_digest([*values, service.secret]))
    if len(parameters["timestamp"]) != 13 or int(parameters["timestamp"]) / 1000 < service.now:
        raise Refused(403, "")
    if parameters.get("type", "") not in ("", "A", "AAAA"):
        raise Refused(400, "MissingArgument")
    return parameters["domain"].split(","), parameters.get("type", ""), int(parameters["timestamp"]) // 1000


def volcengine_answer(service, request):
    record = service.record(request.names[0], request)
    ips = (record.v4 if request.kind != "AAAA" else []) + (record.v6 if request.kind != "A" else [])
    return {"cip": "203.0.113.7", "host": request.names[0], "ips": ips, "ttl": record.ttl}


def baidu(service, path, parameters):
    if path != "/v4/resolve":
        raise Refused(404, "NotFound")
    need(parameters, "account_id", "dn", "t", "sign")
    if parameters["account_id"] != str(service.account) or len(parameters["account_id"]) != 6:
        raise Refused(403, "InvalidAccount")
    expiry = service.check_time(parameters["t"])
    compare(parameters["sign"], digest(f"{parameters['dn']}-{service.secret}-{parameters['t']}"))
    if parameters.get("type", "ipv4") not in ("ipv4", "ipv6", "dual_stack"):
        raise Refused(400, "MissingArgument")
    return parameters["dn"].split(","), parameters.get("type", "ipv4"), expiry


def baidu_answer(service, request):
    data = {}
    for name in request.names:
        record = service.record(name, request)
        data[name] = {family: {"ip": ips, "ttl": record.ttl, "msg": "ok" if ips else "no record"}
                      for family, ips in (("ipv4", record.v4), ("ipv6", record.v6))
                      if request.kind in (family, "dual_stack")}
    return {"msg": "ok", "data": data, "clientip": "203.0.113.7", "timestamp": int(service.now)}


PROTOCOLS = {"alibaba": alibaba, "alibaba-v1": alibaba_v1, "volcengine": volcengine, "baidu": baidu}
ANSWERS = {"alibaba": alibaba_answer, "alibaba-v1": alibaba_v1_answer, "volcengine": volcengine_answer,
           "baidu": baidu_answer}
