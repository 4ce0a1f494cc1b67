// The real sandbox through `startSandbox`, by default on a free port, in memory, with the simulated engine; and a client
// that checks what every response must have.

import { expect } from 'vitest';
import type { Account } from '../../src/sandbox/accounts/accounts.ts';
import { TIERS } from '../../src/sandbox/accounts/tiers.ts';
import { type Environment, type Scope, SCOPES } from '../../src/sandbox/accounts/tokens.ts';
import { type FileServer, startFileServer } from '../../src/sandbox/files/file-server.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { DEFAULT_SETTINGS, type Settings } from '../../src/sandbox/settings.ts';
import type { Job } from '../../src/sandbox/jobs/job.ts';
import { createFolder } from './folder.ts';
import { createTestLog } from './service.ts';
import { waitFor } from './waits.ts';

export type Reply<T = Record<string, unknown>> = {
  readonly status: number;
  readonly body: T;
  readonly headers: Headers;
  readonly rate: { readonly limit: number; readonly remaining: number; readonly resetS: number };
};

type Call = {
  readonly token?: string | undefined;
  /** An object is sent as JSON, text unchanged. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

type Client = {
  /** `path` is relative to the base URL. */
  readonly call: <T = Record<string, unknown>>(
    method: string,
    path: string,
    call?: Call,
  ) => Promise<Reply<T>>;
};

/** Its client uses a token of the account `default` with all scopes, unless a call gives another one. */
export type TestSandbox = AsyncDisposable &
  Client & {
    readonly sandbox: Sandbox;
    readonly url: string;
    readonly token: string;
    readonly log: readonly Record<string, unknown>[];
  };

/** Tests send more requests than the real limit allows. */
const PATIENT = { ...TIERS, enterprise: { ...TIERS.enterprise, burstPerMinute: 1_000_000 } };

export async function startTestSandbox(settings: Partial<Settings> = {}): Promise<TestSandbox> {
  const { log, lines } = createTestLog();
  const sandbox = await startSandbox(
    {
      ...DEFAULT_SETTINGS,
      port: 0,
      engine: 'simulated',
      allowLocal: true,
      tiers: PATIENT,
      simulatedStepMs: 5,
      graceMs: 100,
      ...settings,
    },
    { log },
  );
  const account = sandbox.accounts.change(sandbox.accounts.open('default'), { tier: 'enterprise' });
  const token = newToken(sandbox, { account });
  return {
    sandbox,
    url: sandbox.url,
    token,
    log: lines,
    ...clientOf(sandbox.url, token),
    [Symbol.asyncDispose]: sandbox.stop,
  };
}

export function newToken(
  { accounts }: Pick<Sandbox, 'accounts'>,
  wanted: {
    account?: Account;
    name?: string;
    environment?: Environment;
    scopes?: readonly Scope[];
    expiresAt?: string | null;
  } = {},
): string {
  return accounts.createToken({
    account: accounts.open('default'),
    name: 'a test',
    environment: 'test',
    scopes: SCOPES,
    expiresAt: null,
    ...wanted,
  }).value;
}

export function clientOf(url: string, token: string): Client {
  return { call: (method, path, call = {}) => ask(url, method, path, { token, ...call }) };
}

/** One request. Checks that the answer is JSON, the three headers, and the shape of errors (service interface 7 and 8). */
export async function ask<T = Record<string, unknown>>(
  url: string,
  method: string,
  path: string,
  { token, body, headers = {} }: Call = {},
): Promise<Reply<T>> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: toBody(body) }),
  });
  const text = await response.text();
  const parsed = (text === '' ? {} : JSON.parse(text)) as T;
  if (response.status >= 400 && method !== 'HEAD') {
    expect(parsed).toMatchObject({ error: expect.any(String), message: expect.any(String) });
  }
  return { status: response.status, body: parsed, headers: response.headers, rate: rateOf(response.headers) };
}

function toBody(body: unknown): string | Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return body;
  return body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body);
}

function rateOf(headers: Headers): Reply['rate'] {
  const read = (name: string) => {
    const value = headers.get(`x-ratelimit-${name}`);
    expect(value, `X-RateLimit-${name}`).toMatch(/^\d+$/);
    return Number(value);
  };
  return { limit: read('limit'), remaining: read('remaining'), resetS: read('reset') };
}

/** Nothing listens there. */
export const NOWHERE = 'http://127.0.0.1:1025';

/** The required creation fields, with URLs at which nothing listens. */
export function order(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    job_type: 'video',
    input_url: `${NOWHERE}/input.mp4`,
    output_url: `${NOWHERE}/output.webm`,
    input_format: 'mp4',
    output_format: 'webm',
    ...fields,
  };
}

export async function createJob(on: Client, fields: Record<string, unknown> = {}): Promise<Job> {
  const { status, body } = await on.call<Job>('POST', '/conversion_jobs', { body: order(fields) });
  expect(status).toBe(201);
  return body;
}

/** Waits until the job has ended. */
export function untilEnded(on: Client, jobId: string, timeoutMs = 15_000): Promise<Job> {
  return waitFor(
    async () => {
      const { body } = await on.call<Job>('GET', `/conversion_jobs/${jobId}`);
      if (body.status === 'processing') throw new Error(`still at ${body.progress_percentage} %`);
      return body;
    },
    { timeout: timeoutMs, interval: 50 },
  );
}

export type TestFiles = AsyncDisposable & {
  readonly url: string;
  readonly input: string;
  readonly corrupt: string;
  /** The URL for an output. */
  readonly output: (name: string) => string;
};

/** The file server on a folder of its own, with a valid input for the simulated engine, and an invalid one. */
export async function startTestFiles(): Promise<TestFiles> {
  const folder = await createFolder();
  await folder.write('input.mp4', `\0\0\0\x18ftypisom\0\0\x02\0isomiso2${'x'.repeat(4_000)}`);
  await folder.write('corrupt.mp4', 'this is no film'.repeat(100));
  const { log } = createTestLog();
  const server: FileServer = await startFileServer({
    host: '127.0.0.1',
    port: 0,
    folder: folder.path('.'),
    maxBytes: 1024 * 1024,
    log,
  });
  return {
    url: server.url,
    input: `${server.url}/input.mp4`,
    corrupt: `${server.url}/corrupt.mp4`,
    output: (name) => `${server.url}/${name}`,
    [Symbol.asyncDispose]: async () => {
      await server.stop();
      await folder[Symbol.asyncDispose]();
    },
  };
}
