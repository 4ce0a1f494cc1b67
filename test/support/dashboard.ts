// The sandbox's dashboard as a browser uses it, without one: a cookie, forms with the fields that their page has, redirects
// that are looked at. Each answer is checked for what every page must have.

import { request } from 'undici';
import { expect } from 'vitest';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';

export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Where a form leads, from its origin on. */
  readonly location: string | null;
};

export type Dashboard = {
  readonly origin: string;
  /** `path` is below `/dashboard`. */
  readonly get: (path: string, headers?: Readonly<Record<string, string>>) => Promise<Answer>;
  /** As a page of the dashboard sends it, unless `headers` says something else. `Origin: ''` sends none. */
  readonly post: (
    path: string,
    fields?: Fields,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Answer>;
  /** The cookie that it sends. Taken from answers. */
  cookie: string | undefined;
};

type Fields = Readonly<Record<string, string | readonly string[]>>;

const POLICY = `default-src 'none';script-src 'self';style-src 'self';img-src 'self';connect-src 'self';form-action 'self';frame-ancestors 'none';base-uri 'none'`;

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' } as const;

let keys = 0;

/** One that no other form has. */
export function newKey(): string {
  keys += 1;
  return String(keys).padStart(22, 'k');
}

export function visitor({ dashboardUrl }: Pick<Sandbox, 'dashboardUrl'>): Dashboard {
  const { origin } = new URL(dashboardUrl);

  async function ask(
    method: 'GET' | 'POST',
    path: string,
    { headers, body }: { headers: Readonly<Record<string, string>>; body?: string },
  ): Promise<Answer> {
    // Not `fetch`, which sets Sec-Fetch-Mode itself.
    const response = await request(`${dashboardUrl}${path}`, {
      method,
      headers: { ...(visiting.cookie !== undefined && { Cookie: visiting.cookie }), ...headers },
      ...(body !== undefined && { body }),
    });
    const text = await response.body.text();
    const given = new Headers();
    for (const [name, value] of Object.entries(response.headers)) {
      for (const each of [value ?? []].flat()) given.append(name, each);
    }
    expect(given.get('content-security-policy')).toBe(POLICY);
    expect(given.get('referrer-policy')).toBe('same-origin');
    const [set] = given.getSetCookie();
    if (set !== undefined) visiting.cookie = /^[^=]+=[^;]+/.exec(set)?.[0];
    return { status: response.statusCode, headers: given, text, location: given.get('location') };
  }

  const visiting: Dashboard = {
    origin,
    cookie: undefined,
    get: (path, headers = {}) => ask('GET', path, { headers }),
    post: (path, fields = {}, headers = {}) => {
      const all = { Origin: origin, ...headers };
      const given = Object.entries(all).filter(([, value]) => value !== '');
      return ask('POST', path, {
        headers: { ...FORM, ...Object.fromEntries(given) },
        body: toForm(fields).toString(),
      });
    },
  };
  return visiting;
}

/** With the key that every form of the dashboard carries, unless `fields` has one. */
function toForm(fields: Fields): URLSearchParams {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries({ key: newKey(), ...fields })) {
    for (const each of [value].flat()) form.append(name, each);
  }
  return form;
}

/** Signed in to the account with a code. */
export async function signedIn(sandbox: Sandbox, name = 'default'): Promise<Dashboard> {
  const visiting = visitor(sandbox);
  const code = codeOf(sandbox.newSignIn(sandbox.accounts.open(name)));
  expect(await visiting.post('/sign-in', { code })).toMatchObject({ status: 303, location: '/dashboard' });
  return visiting;
}

export function codeOf(address: string): string {
  return new URL(address).searchParams.get('code') ?? '';
}

/** The text of an answer as a reader sees it. */
export function seen({ text }: { text: string }): string {
  const main = text.slice(text.indexOf('<main'));
  return main
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
}
