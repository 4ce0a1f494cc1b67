// Why a TLS connection was not made, in one sentence that names the cure. Reads the codes of Node and OpenSSL, and knows no
// connection: each kind has its own ways to name a CA.

/** How the one who connects names things. */
export type TlsWords = {
  /** The other side, for people: `broker:5671`. */
  readonly address: string;
  /** What names the CA that is trusted. */
  readonly trust: string;
  /** What names the client's own certificate and key. */
  readonly certificate: string;
};

/** A program's own client of HTTPS, and a command's. */
export const HTTPS_WORDS = {
  trust: 'NODE_EXTRA_CA_CERTS',
  certificate: 'a fetch of your own (commands have none)',
};

type Fault = Readonly<Record<string, unknown>>;

/** The first that matches counts. */
const SENTENCES: readonly (readonly [RegExp, (words: TlsWords, fault: Fault) => string])[] = [
  [
    /^CERT_HAS_EXPIRED$/,
    ({ address }) => `the certificate of ${address}, or of its CA, has expired: renew it there`,
  ],
  [
    /^CERT_NOT_YET_VALID$/,
    ({ address }) => `the certificate of ${address} is not valid yet: compare the clocks of both machines`,
  ],
  [
    /^(ERR_TLS_CERT_ALTNAME_\w+|HOSTNAME_MISMATCH)$/,
    ({ address }, fault) =>
      `the certificate of ${address} is for ${namesIn(fault)} and not for this host: connect by a name that it has, or renew it with this one`,
  ],
  [
    /^DEPTH_ZERO_SELF_SIGNED_CERT$/,
    ({ address, trust }) =>
      `${address} has a self-signed certificate, which is not trusted here: let a CA sign it, or name it by ${trust}`,
  ],
  [
    /^(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|CERT_SIGNATURE_FAILURE)$/,
    ({ address, trust }) =>
      `the CA that signed the certificate of ${address} is not trusted here: name the right one by ${trust}`,
  ],
  [
    /^(CERT|UNABLE_TO|INVALID|CRL|PATH|ERROR_IN_CERT|CA|AKID|SUBJECT_ISSUER|KEYUSAGE)_\w+$/,
    ({ address }, { code }) => `the certificate of ${address} is not trusted (${String(code)})`,
  ],
  [
    /_ALERT_CERTIFICATE_REQUIRED$/,
    ({ address, certificate }) => `${address} wants a certificate of its clients: name one by ${certificate}`,
  ],
  [
    /_ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_\w+)$/,
    ({ address, certificate }, { reason }) =>
      `${address} refused our certificate (${String(reason)}): correct what ${certificate} names`,
  ],
  [
    /_ALERT_HANDSHAKE_FAILURE$/,
    ({ address, certificate }) =>
      `${address} refused the handshake: it wants a certificate of its clients (${certificate}), or other ciphers`,
  ],
  [
    /(_ALERT_PROTOCOL_VERSION|_UNSUPPORTED_PROTOCOL)$/,
    ({ address }) => `${address} has no version of TLS in common with us: let it speak 1.2 or 1.3`,
  ],
  [
    /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/,
    ({ address }) => `${address} does not speak TLS`,
  ],
  [/^ERR_SSL_/, ({ address }, { reason }) => `TLS with ${address} failed (${String(reason)})`],
  [
    /^(ERR_OSSL_|ERR_CRYPTO_)/,
    ({ certificate }, { code }) =>
      `our certificate or its key cannot be used (${String(code)}): correct what ${certificate} names`,
  ],
];

/** The sentence for `error`, or for its cause; undefined if it is about neither TLS nor a file of ours. It quotes no secret. */
export function tlsFaultOf(error: unknown, words: TlsWords): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const fault = error as Fault;
  const { code, path, syscall } = fault;
  if (syscall === 'open' && typeof path === 'string') return `${path} cannot be read (${String(code)})`;
  const found = typeof code === 'string' ? SENTENCES.find(([codes]) => codes.test(code)) : undefined;
  return found === undefined ? tlsFaultOf(fault['cause'], words) : found[1](words, fault);
}

/** They come from the other side. */
const NAMES_MAX = 200;

const namesIn = ({ cert }: Fault): string =>
  certificateNames((cert as { subjectaltname?: unknown } | undefined)?.subjectaltname);

/** With their kinds, as `DNS:a.example, IP:192.0.2.1`: a certificate for `DNS:127.0.0.1` is not for the address 127.0.0.1. */
export function certificateNames(subjectaltname: unknown): string {
  if (typeof subjectaltname !== 'string' || subjectaltname === '') return 'no name';
  return subjectaltname.replaceAll('IP Address:', 'IP:').slice(0, NAMES_MAX);
}
