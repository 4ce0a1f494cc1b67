// A self-signed certificate for a TLS server on loopback, made without any program or package: X.509 (RFC 5280) in DER, with
// only the fields that a client checks.

import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

export type Certificate = { readonly key: string; readonly cert: string };

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

/** Valid for `localhost` and 127.0.0.1, since yesterday and for a day, unless told otherwise. */
export function selfSignedCertificate({
  days = 1,
  isForAddress = true,
}: {
  days?: number;
  isForAddress?: boolean;
} = {}): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const name = sequence(tlv(0x31, sequence(oid(OIDS.name), tlv(0x0c, Buffer.from('localhost')))));
  const address = isForAddress ? [tlv(0x87, Buffer.from([127, 0, 0, 1]))] : [];
  const hosts = sequence(tlv(0x82, Buffer.from('localhost')), ...address);
  const signed = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))), // version 3
    tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    sequence(oid(OIDS.ecdsa)),
    name,
    sequence(utcTime(Date.now() - Math.max(1, 1 - days) * DAY_MS), utcTime(Date.now() + days * DAY_MS)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tlv(
      0xa3,
      sequence(
        sequence(oid(OIDS.basic), TRUE, tlv(0x04, sequence(TRUE))),
        sequence(oid(OIDS.hosts), tlv(0x04, hosts)),
      ),
    ),
  );
  const signature = sign('sha256', signed, privateKey);
  const der = sequence(signed, sequence(oid(OIDS.ecdsa)), tlv(0x03, Buffer.from([0]), signature));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
  };
}
