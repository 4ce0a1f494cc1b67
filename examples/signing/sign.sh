#!/usr/bin/env bash
# Prints the value of X-Service-Signature for a body: bash sign.sh SECRET_FILE BODY_FILE
# It makes the HMAC step by step (RFC 2104): all users of a machine can see the arguments of "openssl dgst -hmac SECRET".
set -euo pipefail

sha256() { openssl dgst -sha256 -binary; }
numbers() { od -An -v -tu1; } # one for each byte
secret() { tr -d '\r\n' < "$1"; } # a newline at the file's end is not part of it

key=($(secret "$1" | numbers))
if ((${#key[@]} > 64)); then key=($(secret "$1" | sha256 | numbers)); fi

pad() { # the key, filled up to 64 bytes with zeros, each byte XOR $1
  local i bytes=
  for i in {0..63}; do printf -v bytes '%s\\x%02x' "$bytes" $((${key[i]:-0} ^ $1)); done
  printf "$bytes"
}
digest=$({ pad 0x36; cat "$2"; } | sha256 | { pad 0x5c; cat; } | sha256 | od -An -v -tx1 | tr -d ' \n')
echo "sha256=$digest"
