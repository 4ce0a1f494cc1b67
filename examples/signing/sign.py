"""Prints the value of X-Service-Signature for a body: python3 sign.py SECRET_FILE BODY_FILE"""
import hashlib
import hmac
import sys
from pathlib import Path


def signature_of(secret: str, body: bytes) -> str:
    """Send the same bytes afterwards: requests.post(url, data=body, …), and not json=…"""
    return "sha256=" + hmac.new(secret.encode("utf-8"), body, hashlib.sha256).hexdigest()


secret_file, body_file = sys.argv[1:]
# White space at its ends and a byte order mark are not part of it.
secret = Path(secret_file).read_bytes().decode("utf-8-sig").strip()
print(signature_of(secret, Path(body_file).read_bytes()))
