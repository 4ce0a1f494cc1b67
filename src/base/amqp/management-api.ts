// One question to RabbitMQ's management API, over HTTP: bounded in time and size, no redirect followed. Only reads. What it says of a
// failure holds neither the account nor its password.

import { lookup as systemLookup } from 'node:dns';
import { parseIfJson } from '../json/json.ts';
import { type CertificateFiles, readCertificates } from '../net/certificates.ts';
import { readUpTo } from '../net/byte-stream.ts';
import { connectionFault } from '../net/connection-fault.ts';
import { limitLookups } from '../net/lookups.ts';
import { requestOnce } from '../net/request-once.ts';
import { tlsFaultOf } from '../net/tls-fault.ts';

/** `because`: behind "RabbitMQ's management API", as "did not answer within 1 s". */
export type ManagementAnswer = { readonly json: unknown } | { readonly because: string };

/** @param path below `/api`, each part of it encoded. Never rejects */
export type AskManagement = (path: string) => Promise<ManagementAnswer>;

/** It answers within 0.2 s. A person waits for it. */
const TIMEOUT_MS = 1_000;
/** Of some 10,000 bindings, or of 500 queues with their policies. */
const ANSWER_MAX_BYTES = 2 * 1024 * 1024;
/** libuv's threads are for all of the process. */
const LOOKUPS_MAX = 1;

const STATUSES: Readonly<Record<number, string>> = {
  401: 'refused the account of BROKER_MANAGEMENT_URL: it needs the tag management, and permissions on the virtual host, as ^$ ^$ ^$',
  404: 'does not know the virtual host of AMQP_URL',
};

/** @param url with the account: `http://user:password@host:15672` */
export function createManagementApi({
  url,
  certificates,
}: {
  url: string;
  certificates: CertificateFiles;
}): AskManagement {
  const base = url.replace(/\/+$/, '');
  const isTls = new URL(url).protocol === 'https:';
  const lookup = limitLookups(systemLookup, LOOKUPS_MAX);

  async function exchange(path: string, signal: AbortSignal): Promise<ManagementAnswer> {
    const response = await requestOnce(new URL(`${base}/api/${path}`), {
      headers: { Accept: 'application/json' },
      lookup,
      signal,
      // Read for each connection, so that a renewed one needs no restart.
      ...(isTls && readCertificates(certificates)),
    });
    const { statusCode = 0 } = response;
    if (statusCode !== 200) {
      response.destroy();
      return { because: STATUSES[statusCode] ?? `answered with status ${statusCode}` };
    }
    const bytes = await readUpTo(ANSWER_MAX_BYTES + 1, response);
    if (bytes.length > ANSWER_MAX_BYTES)
      return { because: `answered with more than ${ANSWER_MAX_BYTES / 1024 ** 2} MiB` };
    const json = parseIfJson(bytes.toString('utf8'));
    return json === undefined ? { because: 'did not answer with JSON' } : { json };
  }

  return async (path) => {
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    try {
      return await exchange(path, timeout);
    } catch (error) {
      if (timeout.aborted) return { because: `did not answer within ${TIMEOUT_MS / 1_000} s` };
      const fault = tlsFaultOf(error, {
        address: new URL(url).host,
        trust: 'BROKER_MANAGEMENT_CA_FILE',
        certificate: 'another listener (Tallyhook has none to show there)',
      });
      return { because: `cannot be asked: ${fault ?? connectionFault(error)}` };
    }
  };
}
