// Certificates for servers and clients on loopback, self-signed or of an authority of the test's own, made without any program or
// package: X.509 (RFC 5280) in DER, with only the fields that the other side checks.

import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';

/** In PEM. */
export type Certificate = { readonly key: string; readonly cert: string };

export type Authority = {
  /** What those who trust it are given. */
  readonly cert: string;
  readonly issue: (options?: Wanted) => Certificate;
};

type Wanted = {
  /** The common name, of a client its account: `localhost`. */
  readonly name?: string;
  /** Names and IPv4 addresses of a server: `localhost` and 127.0.0.1. */
  readonly hosts?: readonly string[];
  /** Since yesterday, for so many days (1). With 0 or less it is over, but for a day it was valid. */
  readonly days?: number;
};

/** `issuer`: itself, if not given. */
type Request = Required<Wanted> & {
  readonly isAuthority: boolean;
  readonly issuer?: { readonly name: string; readonly key: KeyObject };
};

const DAY_MS = 24 * 60 * 60 * 1_000;

function tlv(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const bytes = body.length < 0x100 ? [0x81, body.length] : [0x82, body.length >> 8, body.length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...bytes]), body]);
}

const sequence = (...content: readonly Uint8Array[]) => tlv(0x30, ...content);
const oid = (hex: string) => tlv(0x06, Buffer.from(hex, 'hex'));
const TRUE = tlv(0x01, Buffer.from([0xff]));

/** ecdsa-with-SHA256, commonName, subjectAltName and basicConstraints. */
const OIDS = { ecdsa: '2a8648ce3d040302', name: '550403', hosts: '551d11', basic: '551d13' } as const;

const utcTime = (ms: number) =>
  tlv(0x17, Buffer.from(`${new Date(ms).toISOString().replaceAll(/[-:T]/g, '').slice(2, 14)}Z`));

const nameOf = (text: string) => sequence(tlv(0x31, sequence(oid(OIDS.name), tlv(0x0c, Buffer.from(text)))));
const hostOf = (host: string) =>
  isIPv4(host) ? tlv(0x87, Buffer.from(host.split('.').map(Number))) : tlv(0x82, Buffer.from(host));
const extension = (type: string, value: Uint8Array) => sequence(oid(type), tlv(0x04, value));

function certify({
  name,
  hosts,
  days,
  isAuthority,
  issuer,
}: Request): Certificate & { privateKey: KeyObject } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const signed = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))), // version 3
    tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    sequence(oid(OIDS.ecdsa)),
    nameOf(issuer?.name ?? name),
    sequence(utcTime(Date.now() - Math.max(1, 1 - days) * DAY_MS), utcTime(Date.now() + days * DAY_MS)),
    nameOf(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    tlv(
      0xa3,
      sequence(
        extension(OIDS.basic, sequence(...(isAuthority ? [TRUE] : []))),
        ...(hosts.length > 0 ? [extension(OIDS.hosts, sequence(...hosts.map(hostOf)))] : []),
      ),
    ),
  );
  const signature = sign('sha256', signed, issuer?.key ?? privateKey);
  const der = sequence(signed, sequence(oid(OIDS.ecdsa)), tlv(0x03, Buffer.from([0]), signature));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    privateKey,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
  };
}

const USUAL = { name: 'localhost', hosts: ['localhost', '127.0.0.1'], days: 1 } as const;

/** One that vouches for itself, for trial. */
export function selfSignedCertificate(wanted: Wanted = {}): Certificate {
  const { key, cert } = certify({ ...USUAL, ...wanted, isAuthority: true });
  return { key, cert };
}

export function createAuthority(name = 'an authority of a test'): Authority {
  const { cert, privateKey } = certify({ name, hosts: [], days: 2, isAuthority: true });
  return {
    cert,
    issue: (wanted = {}) => {
      const issued = certify({ ...USUAL, ...wanted, isAuthority: false, issuer: { name, key: privateKey } });
      return { key: issued.key, cert: issued.cert };
    },
  };
}
