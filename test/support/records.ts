// Delivery records as intake makes them, for tests of the ledger.

import { randomUUIDv7 } from 'node:crypto';
import {
  type AuthenticBody,
  type Understanding,
  understand,
} from '../../src/ledger/understanding/understand.ts';
import { createSecret, type Secret } from '../../src/base/signing/secret.ts';
import { createKeyRing, verifySignature } from '../../src/intake/signature.ts';
import type { DeliveryRecord } from '../../src/ledger/recording/record.ts';
import { type Notification, SECRET, sign } from './sender.ts';

export function secretOf(text: string): Secret {
  const secret = createSecret(text);
  if (typeof secret === 'string') throw new Error(`the secret ${secret}`);
  return secret;
}

const ring = createKeyRing(new Map([['default', [secretOf(SECRET)]]]));

/** A body that was signed and verified, as every body is. */
function authentic(body: string | Buffer): AuthenticBody {
  const bytes = Buffer.from(body);
  const verified = verifySignature(ring, 'default', sign(bytes), bytes);
  if (verified === undefined) throw new Error('the test signed it itself');
  return verified.body;
}

export const understood = (body: string | Buffer): Understanding => understand(authentic(body));

/** The record of a delivery that is an event. @throws Error for any other. */
export function eventRecord(
  content: Notification | string,
  options: { source?: string } = {},
): DeliveryRecord & { outcome: 'event' } {
  const body = authentic(typeof content === 'string' ? content : JSON.stringify(content));
  const understanding = understand(body);
  if (understanding.outcome !== 'event') throw new Error(`not an event but ${understanding.outcome}`);
  const { event } = understanding;
  return {
    id: randomUUIDv7(),
    source: options.source ?? 'default',
    path: '/webhooks',
    remoteAddress: '127.0.0.1',
    peerAddress: null,
    headers: '{}',
    secretFingerprint: 'abcdefabcdef',
    jobId: event.jobId,
    status: event.status,
    progress: event.progress,
    reason: null,
    signedBy: null,
    bodyBytes: body.length,
    body,
    outcome: 'event',
    event,
  };
}

/** The record of a delivery that was unauthorized or refused. */
export function refusedRecord(
  options: { source?: string; outcome?: 'unauthorized' | 'refused'; remoteAddress?: string } = {},
): DeliveryRecord & { outcome: 'unauthorized' | 'refused' } {
  return {
    id: randomUUIDv7(),
    source: options.source ?? 'default',
    path: '/webhooks',
    remoteAddress: options.remoteAddress ?? null,
    peerAddress: null,
    headers: '{}',
    secretFingerprint: null,
    jobId: null,
    status: null,
    progress: null,
    reason: null,
    signedBy: null,
    bodyBytes: null,
    body: null,
    outcome: options.outcome ?? 'unauthorized',
    httpStatus: options.outcome === 'refused' ? 413 : 401,
  };
}
