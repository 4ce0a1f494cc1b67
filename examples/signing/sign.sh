#!/usr/bin/env bash
# Prints the value of X-Service-Signature for a body: bash sign.sh SECRET_FILE BODY_FILE
# It makes the HMAC step by step (RFC 2104): all users of a machine can see the arguments of "openssl dgst -hmac SECRET".
set -euo pipefail

sha256() { openssl dgst -sha256 -binary; }
numbers() { od -An -v -tu1; } # one for each byte
secret() { # of a file, without white space at its ends and a byte order mark
  local LC_ALL=C text space
  text=$(< "$1") text=${text#$'\xef\xbb\xbf'}
  space=${text%%[![:space:]]*} text=${text#"$space"}
  space=${text##*[![:space:]]} text=${text%"$space"}
  printf %s "$text"
}

key=($(secret "$1" | numbers))
if ((${#key[@]} > 64)); then key=($(secret "$1" | sha256 | numbers)); fi

pad() { # the key, filled up to 64 bytes with zeros, each byte XOR $1
  local i bytes=
  for i in {0..63}; do printf -v bytes '%s\\x%02x' "$bytes" $((${key[i]:-0} ^ $1)); done
  printf "$bytes"
}
digest=$({ pad 0x36; cat "$2"; } | sha256 | { pad 0x5c; cat; } | sha256 | od -An -v -tx1 | tr -d ' \n')
echo "sha256=$digest"
