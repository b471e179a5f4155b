"""Certificates for tests, made when they are needed."""

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


class Authority:
    """A root that issues certificates."""

    def __init__(self, name: str):
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = pem(builder.sign(self._key, hashes.SHA256()))

    def issue(self, name: str, form="PKCS8", days=1, address: str | None = None) -> tuple[bytes, bytes]:
        """The certificate of a host or client of this name, and its key: `PKCS1` is one of RSA, the others of P-256. The
        host may have an address too.
        """
        rsa_key = form == "PKCS1"
        key = rsa.generate_private_key(65537, 2048) if rsa_key else ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(subject, key, days)
        names = [x509.DNSName(name)]
        if address is not None:
            names.append(x509.IPAddress(ipaddress.ip_address(address)))
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        # What the library calls by the name of OpenSSL's old form is PKCS#1 of RSA and SEC1 of curves.
        kind = serialization.PrivateFormat.PKCS8 if form == "PKCS8" else serialization.PrivateFormat.TraditionalOpenSSL
        written = key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption())
        return pem(builder.sign(self._key, hashes.SHA256())), written

    def _builder(self, subject, key, days=1) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.timezone.utc)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 3 * DAY)
            .not_valid_after(now + days * DAY)
        )


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
