// What tests of the API clients need: the answers of a scripted conversion service, and a client that records its waits
// instead of waiting.

import type { ServerResponse } from 'node:http';
import { expect } from 'vitest';
import { type Client, type ClientOptions, createClient, type NewJob } from '../../src/origin/client.ts';
import type { Receiver, Respond } from './receiver.ts';

export const TOKEN = 'cvs_test_pLaNtEd-0123456789';
export const NEW_JOB: NewJob = {
  job_type: 'video',
  input_url: 'https://files.example/in.mp4',
  output_url: 'https://files.example/out.webm',
  input_format: 'mp4',
  output_format: 'webm',
};
export const JOB = { job_id: 'job_1', status: 'processing', progress_percentage: 0, ...NEW_JOB };
export const ACCOUNT = {
  account_id: 'account_1',
  name: 'Team A',
  tier: 'pro',
  environment: 'test',
  token: { name: 'ci', scopes: ['jobs:read'], expires_at: null, last_used_at: '2026-01-15T10:30:00.000Z' },
  rate_limit: { requests_per_hour: 10_000, burst_per_minute: 200 },
  engine: { kind: 'simulated', version: '1' },
  sandbox: true,
};

type Headers = Record<string, string>;

export function reply(
  response: ServerResponse,
  status: number,
  content: unknown,
  headers: Headers = {},
): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(content));
}

export const always =
  (status: number, content: unknown, headers: Headers = {}): Respond =>
  (response) =>
    reply(response, status, content, headers);

export const limitHeaders = (resetSeconds: number): Headers => ({
  'X-RateLimit-Limit': '10',
  'X-RateLimit-Remaining': '0',
  'X-RateLimit-Reset': String(resetSeconds),
});

/** A client of the service. `waits` are the times that it would have waited. */
export function scriptedClient(
  service: Pick<Receiver, 'port'>,
  options: Partial<ClientOptions> = {},
): Client & { readonly waits: readonly number[] } {
  const waits: number[] = [];
  const client = createClient({
    url: `http://127.0.0.1:${service.port}/v1`,
    token: TOKEN,
    sleep: (ms) => {
      waits.push(ms);
      return Promise.resolve();
    },
    ...options,
  });
  return { ...client, waits };
}

/** The error that a promise was rejected with. */
export const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => expect.fail('it did not fail'),
    (error: unknown) => error,
  );
