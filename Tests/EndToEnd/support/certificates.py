"""Certificates made while the tests run."""

import base64
import datetime
import hashlib
import ipaddress
import ssl
import subprocess

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)
SERVICE = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "service")])


def new_key():
    return ec.generate_private_key(ec.SECP256R1())


def pin(key):
    """The pin of every certificate for a key: "sha256/" and the SHA-256 of its SubjectPublicKeyInfo (RFC 7469)."""
    info = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return "sha256/" + base64.b64encode(hashlib.sha256(info).digest()).decode()


class Authority:
    """A certification authority of the tests' own, under `parent` or a root."""

    def __init__(self, directory, name, parent=None):
        self.directory = directory
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.key = new_key()
        self.pin = pin(self.key)
        signer = parent or self
        constraints = x509.BasicConstraints(ca=True, path_length=None if parent is None else 0)
        certificate = signer._sign(self.name, self.key, -1, 30, constraints)
        self.pem = _pem(certificate)
        # the chain that a server sends after its own certificate: all certificates below the root
        self.chain = self.pem + parent.chain if parent else b""
        self.file = directory / f"{name}.pem"
        self.file.write_bytes(self.pem)
        self.der_file = directory / f"{name}.der"
        self.der_file.write_bytes(certificate.public_bytes(serialization.Encoding.DER))

    def _sign(self, subject, key, since, until, constraints, *extensions):
        return _sign(self.name, self.key, subject, key, since, until, constraints, *extensions)

    def server(self, *, addresses=(), names=(), since=-1, until=30, highest=None, key=None, chain=None, clients=None):
        """An `SSLContext` of a server with a certificate for these, valid between two days counted from now.

        `key` is the certificate's; `chain` is sent after it instead of the authority's own; a client must have a
        certificate of `clients`, if that is given.
        """
        key = key or new_key()
        certificate = self._sign(SERVICE, key, since, until, None, _alternatives(addresses, names))
        sent = _pem(certificate) + (self.chain if chain is None else chain)
        return _context(self.directory, sent, key, highest, clients)

    def server_file(self, **alternatives):
        """A PEM file of such a certificate and its key, for servers that are programs of their own."""
        key = new_key()
        certificate = self._sign(SERVICE, key, -1, 30, None, _alternatives(**alternatives))
        return _file(self.directory, _pem(certificate) + self.chain, key)

    def client(self, name, password, *, since=-1, until=30, options=()):
        """A PKCS#12 file of a client's certificate, its key and what is below the root."""
        key = new_key()
        certificate = self._sign(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key, since, until, None)
        path = self.directory / f"client-{certificate.serial_number:x}.p12"
        command = ["openssl", "pkcs12", "-export", "-out", str(path), "-passout", "env:PASSWORD", *options]
        pem = self.directory / f"client-{certificate.serial_number:x}.pem"
        pem.write_bytes(_private_pem(key) + _pem(certificate) + self.chain)
        subprocess.run([*command, "-in", str(pem)], env={"PASSWORD": password, "PATH": "/usr/bin:/bin"}, check=True)
        return path


def self_signed(directory, *, addresses=(), names=(), until=30):
    """An `SSLContext` of a server whose certificate is signed by itself, and the file of that certificate."""
    key = new_key()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a service of one's own")])
    extensions = [_alternatives(addresses, names)] if addresses or names else []
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    certificate = _sign(subject, key, subject, key, -20, until, constraints, *extensions)
    path = directory / f"self-signed-{certificate.serial_number:x}.pem"
    path.write_bytes(_pem(certificate))
    return _context(directory, _pem(certificate), key), path


def _sign(issuer, issuer_key, subject, key, since, until, constraints, *extensions):
    now = datetime.datetime.utcnow()
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(
        key.public_key()).serial_number(x509.random_serial_number()).not_valid_before(
            now + since * DAY).not_valid_after(now + until * DAY)
    if constraints is not None:
        builder = builder.add_extension(constraints, critical=True)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _alternatives(addresses=(), names=()):
    return x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
                                       + [x509.DNSName(name) for name in names])


def _pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private_pem(key):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                             serialization.NoEncryption())


def _file(directory, chain, key):
    path = directory / f"server-{hashlib.sha256(chain).hexdigest()}.pem"
    path.write_bytes(chain + _private_pem(key))
    return path


def _context(directory, chain, key, highest=None, clients=None):
    path = _file(directory, chain, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients.file)
    if highest is not None:
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = highest
        context.maximum_version = highest
    return context
