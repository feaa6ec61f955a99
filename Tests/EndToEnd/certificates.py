"""Certificates made while the tests run."""

import datetime
import ipaddress
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


class Authority:
    """A certification authority of the tests' own."""

    def __init__(self, directory, name):
        self.directory = directory
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.utcnow()
        certificate = self._builder(self.name, self._key, now - DAY, now + 30 * DAY).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(self._key, hashes.SHA256())
        self.file = directory / f"{name}.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        self.der_file = directory / f"{name}.der"
        self.der_file.write_bytes(certificate.public_bytes(serialization.Encoding.DER))

    def _builder(self, subject, key, since, until):
        return x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(
            key.public_key()).serial_number(x509.random_serial_number()).not_valid_before(since).not_valid_after(until)

    def server(self, *, addresses=(), names=(), since=-1, until=30, highest=None):
        """An `SSLContext` of a server with a certificate for these, valid between two days counted from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.utcnow()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "service")])
        alternatives = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        alternatives += [x509.DNSName(name) for name in names]
        certificate = self._builder(subject, key, now + since * DAY, now + until * DAY).add_extension(
            x509.SubjectAlternativeName(alternatives), critical=False).sign(self._key, hashes.SHA256())
        path = self.directory / f"server-{certificate.serial_number:x}.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        if highest is not None:
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = highest
            context.maximum_version = highest
        return context
