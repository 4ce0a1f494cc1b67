// One question to RabbitMQ's management API, over HTTP: bounded in time and size, no redirect followed. Only reads. What it says of a
// failure holds neither the account nor its password.

import { lookup as systemLookup } from 'node:dns';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { parseIfJson } from '../json/json.ts';
import { type CertificateFiles, readCertificates } from '../net/certificates.ts';
import { connectionFault } from '../net/connection-fault.ts';
import { limitLookups } from '../net/lookups.ts';
import { tlsFaultOf } from '../net/tls-fault.ts';
import { version } from '../version.ts';

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
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const options = {
        headers: { 'User-Agent': `tallyhook/${version}`, Accept: 'application/json', Connection: 'close' },
        lookup,
        signal,
        // Read for each connection, so that a renewed one needs no restart.
        ...(isTls && readCertificates(certificates)),
      };
      const request = (isTls ? httpsRequest : httpRequest)(`${base}/api/${path}`, options, resolve);
      request.on('error', reject);
      request.end();
    });
    const { statusCode = 0 } = response;
    if (statusCode !== 200) {
      response.destroy();
      return { because: STATUSES[statusCode] ?? `answered with status ${statusCode}` };
    }
    const text = await readText(response);
    if (text === undefined) return { because: `answered with more than ${ANSWER_MAX_BYTES / 1024 ** 2} MiB` };
    const json = parseIfJson(text);
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

/** Undefined if it is longer than we read. */
async function readText(response: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > ANSWER_MAX_BYTES) return undefined; // leaving the loop closes the connection
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
