// What a client of TLS brings: the CA that it trusts instead of Node's, and a certificate and key of its own. With the names of
// Node's `tls`, in PEM.

import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';

type Pem = string | Buffer;

export type Certificates = {
  /** Those that are trusted, instead of the public ones. */
  readonly ca?: Pem | Pem[] | undefined;
  readonly cert?: Pem | undefined;
  readonly key?: Pem | undefined;
};

/** The path of each. */
export type CertificateFiles = { readonly [Name in keyof Certificates]?: string | undefined };

/** Small files, read for each connection, so that a renewed one needs no restart. @throws the system's error, with the path */
export function readCertificates(files: CertificateFiles): Certificates {
  return Object.fromEntries(
    Object.entries(files).flatMap(([name, path]) => (path === undefined ? [] : [[name, readFileSync(path)]])),
  );
}

/** What is wrong with them, whoever is connected to; undefined if nothing is. It quotes none of them. */
export function certificatesFault({ ca, cert, key }: Certificates): string | undefined {
  if ((cert === undefined) !== (key === undefined))
    return 'a certificate of the client needs its key, and a key its certificate';
  if (ca !== undefined && ![ca].flat().every((one) => isUsable(() => new X509Certificate(one))))
    return 'the CA is no certificate in PEM';
  if (cert !== undefined && !isUsable(() => createSecureContext({ cert, key })))
    return 'the certificate of the client and its key do not fit, or are not in PEM without a passphrase';
  return undefined;
}

/** OpenSSL throws for what it cannot read. Node itself takes a `ca` without any certificate, and then trusts nobody. */
function isUsable(use: () => unknown): boolean {
  try {
    use();
    return true;
  } catch {
    return false;
  }
}
