"""An identity provider for tests: keys that it publishes as such services do, and tokens that they sign."""

import base64
import contextlib
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

import local_server

AUDIENCE = "trainyard-tests"


def encode(data) -> str:
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def claims(token: str) -> dict:
    """What a token says, unverified."""
    return json.loads(decode(token.split(".")[1]))


def number(value: int) -> str:
    return encode(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class Key:
    """A key pair of an algorithm."""

    def __init__(self, algorithm: str, kid: str):
        self.algorithm, self.kid = algorithm, kid
        if algorithm == "EdDSA":
            self.private = ed25519.Ed25519PrivateKey.generate()
        elif algorithm == "ES256":
            self.private = ec.generate_private_key(ec.SECP256R1())
        else:
            self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def published(self) -> dict:
        common = {"kid": self.kid, "use": "sig", "alg": self.algorithm}
        public = self.private.public_key()
        if self.algorithm == "EdDSA":
            return common | {"kty": "OKP", "crv": "Ed25519", "x": encode(public.public_bytes_raw())}
        numbers = public.public_numbers()
        if self.algorithm == "ES256":
            point = {"x": encode(numbers.x.to_bytes(32, "big")), "y": encode(numbers.y.to_bytes(32, "big"))}
            return common | {"kty": "EC", "crv": "P-256"} | point
        return common | {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}

    def signature(self, message: bytes) -> bytes:
        if self.algorithm == "EdDSA":
            return self.private.sign(message)
        if self.algorithm == "ES256":
            r, s = utils.decode_dss_signature(self.private.sign(message, ec.ECDSA(hashes.SHA256())))
            return r.to_bytes(32, "big") + s.to_bytes(32, "big")
        salted = padding.PSS(padding.MGF1(hashes.SHA256()), hashes.SHA256().digest_size)
        scheme = salted if self.algorithm == "PS256" else padding.PKCS1v15()
        return self.private.sign(message, scheme, hashes.SHA256())

    def sign(self, payload: dict, **header) -> str:
        message = f"{encode({'alg': self.algorithm, 'kid': self.kid} | header)}.{encode(payload)}"
        return f"{message}.{encode(self.signature(message.encode()))}"


class IdentityProvider:
    """Serves its configuration and its keys, and counts who asks."""

    def __init__(self):
        self.keys = [Key("RS256", "first")]
        self.asked = {}
        self.broken = None
        """What every answer is instead: a status and a body."""
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                provider.asked[self.path] = provider.asked.get(self.path, 0) + 1
                status, body = provider.broken or provider.answer(self.path)
                self.send_response(status)
                if status == 302:
                    self.send_header("location", f"{provider.url}/keys")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, *words):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = local_server.start(self.server)

    def answer(self, path: str) -> tuple[int, bytes]:
        if path == "/.well-known/openid-configuration":
            return 200, json.dumps({"issuer": self.url, "jwks_uri": f"{self.url}/keys"}).encode()
        if path == "/keys":
            unusable = [{"kty": "oct", "k": "c2VjcmV0", "kid": "oct"}, {"kty": "unheard of"}]
            return 200, json.dumps({"keys": [key.published() for key in self.keys] + unusable}).encode()
        return 404, b"{}"

    def claims(self, **changes) -> dict:
        now = int(time.time())
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": "s-1", "iat": now, "exp": now + 600}
        usual |= {"org": "acme", "email": "eve@acme.example", "email_verified": True, "groups": ["developers"]}
        return {name: value for name, value in (usual | changes).items() if value is not None}

    def token(self, **changes) -> str:
        return self.keys[-1].sign(self.claims(**changes))

    def close(self):
        self.server.shutdown()
        self.server.server_close()
