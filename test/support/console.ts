// Visits the console as a browser does: signs in with a token, keeps the cookie, and sends with each request what a browser
// says about where it comes from. An answer is parsed just enough to assert on its text, links and forms.

import { type IncomingHttpHeaders, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { BrowserContext } from 'playwright-core';
import type { Token } from '../../src/operators/kernel/access/tokens.queries.ts';
import { newToken, type TokenOptions } from './operators.ts';

export const COOKIE_NAME = 'tallyhook_console';

/** A running service: a TestService, or a Replica with its database. */
type Running = { readonly operators: string; readonly database: { readonly url: string } };

export type Form = {
  readonly action: string;
  readonly method: 'get' | 'post';
  /** Fields with their values as they stand in the page. Of a select: what is chosen. */
  readonly fields: Readonly<Record<string, string>>;
  readonly text: string;
};

export type PageAnswer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly html: string;
  /** What is read on the page: without tags, runs of white space as one space. */
  readonly text: string;
  /** The content of each `pre`, exactly. */
  readonly pres: readonly string[];
  readonly links: readonly { readonly href: string; readonly text: string }[];
  readonly forms: readonly Form[];
  /** Of a redirect. */
  readonly location: string | undefined;
};

export type Ask = {
  readonly method?: 'GET' | 'HEAD' | 'POST';
  /** Undefined leaves out a header that a browser sends. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly form?: Fields;
  /** A loopback address of this machine, by default 127.0.0.1. */
  readonly from?: string;
  /** Does not wait for the body of an answer that is a stream. */
  readonly leavesAtOnce?: boolean;
};

/** Pairs, where a name occurs more than once. */
export type Fields = Readonly<Record<string, string>> | Pairs;

type Pairs = readonly (readonly [name: string, value: string])[];

export type Visit = {
  readonly token: Token;
  /** The token's value. */
  readonly value: string;
  /** The session's value. */
  readonly session: string;
  /** `path` from the root: `/console/jobs?state=failed`. Does not follow redirects. */
  readonly get: (path: string, ask?: Ask) => Promise<PageAnswer>;
  readonly post: (path: string, form?: Fields, ask?: Ask) => Promise<PageAnswer>;
  /** Sends a form of a page, with other values or the button that is pressed. */
  readonly submit: (form: Form | undefined, values?: Record<string, string>) => Promise<PageAnswer>;
};

/** `await visitConsole(relay, { role: 'viewer', sources: ['a'] })`; by default an admin. */
export async function visitConsole(relay: Running, options: TokenOptions = {}): Promise<Visit> {
  const { token, value } = await newToken(relay.database, options);
  const answer = await askConsole(relay, '/console/sign-in', { method: 'POST', form: { token: value } });
  const session = sessionIn(answer);
  if (session === undefined) throw new Error(`signing in failed with ${answer.status}: ${answer.text}`);
  return { token, value, ...visitWith(relay, session) };
}

/** With the value of a session that has begun. */
export function visitWith(
  relay: Pick<Running, 'operators'>,
  session: string,
): Omit<Visit, 'token' | 'value'> {
  const ask = (path: string, asked: Ask) =>
    askConsole(relay, path, {
      ...asked,
      headers: { cookie: `${COOKIE_NAME}=${session}`, ...asked.headers },
    });
  const post = (path: string, form: Fields = {}, asked: Ask = {}) =>
    ask(path, { ...asked, method: 'POST', form });
  return {
    session,
    get: (path, asked = {}) => ask(path, asked),
    post,
    submit: async (form, values = {}) => {
      if (form === undefined) throw new Error('there is no such form on the page');
      const fields = { ...form.fields, ...values };
      if (form.method === 'post') return post(form.action, fields);
      const query = new URLSearchParams(fields).toString();
      return ask(`${form.action}${query === '' ? '' : `?${query}`}`, {});
    },
  };
}

/** Signs a browser in: its cookie is set as the console would set it. */
export async function signInBrowser(
  context: BrowserContext,
  relay: Running,
  options: TokenOptions = {},
): Promise<Visit> {
  const visit = await visitConsole(relay, options);
  await context.addCookies([
    {
      name: COOKIE_NAME,
      value: visit.session,
      domain: new URL(relay.operators).hostname,
      path: '/console',
      httpOnly: true,
      sameSite: 'Lax',
    },
  ]);
  return visit;
}

/** The session that an answer began. */
export function sessionIn({ headers }: Pick<PageAnswer, 'headers'>): string | undefined {
  const [cookie] = headers['set-cookie'] ?? [];
  return cookie?.match(new RegExp(`^${COOKIE_NAME}=([^;]+)`))?.[1];
}

/** One request, with the headers of a browser that is on a page of the console. */
export async function askConsole(
  { operators }: Pick<Running, 'operators'>,
  path: string,
  { method = 'GET', headers = {}, form, from = '127.0.0.1', leavesAtOnce = false }: Ask = {},
): Promise<PageAnswer> {
  const sent = {
    'sec-fetch-site': 'same-origin',
    'sec-fetch-mode': 'navigate',
    'sec-fetch-dest': 'document',
    ...(method === 'POST' && { origin: operators, 'content-type': 'application/x-www-form-urlencoded' }),
    ...headers,
  };
  const given = Object.entries(sent).filter((each): each is [string, string] => each[1] !== undefined);
  const asked = request(`${operators}${path}`, {
    method,
    headers: Object.fromEntries(given),
    localAddress: from,
    agent: false,
  });
  const answered = Promise.withResolvers<PageAnswer>();
  asked.once('error', answered.reject);
  asked.once('response', (response) => {
    const parse = (bytes: Buffer) => parsePage(response.statusCode ?? 0, response.headers, bytes);
    if (leavesAtOnce && response.headers['content-type']?.startsWith('text/event-stream')) {
      answered.resolve(parse(Buffer.alloc(0)));
      asked.destroy();
      return;
    }
    buffer(response).then(parse).then(answered.resolve, answered.reject);
  });
  asked.end(form && encodeForm(form));
  return answered.promise;
}

/** As browsers do: line ends become CR LF. */
function encodeForm(fields: Fields): string {
  const form = new URLSearchParams();
  const pairs = isPairs(fields) ? fields : Object.entries(fields);
  for (const [name, value] of pairs) form.append(name, value.replaceAll(/\r?\n/g, '\r\n'));
  return form.toString();
}

const isPairs = (fields: Fields): fields is Pairs => Array.isArray(fields);

function parsePage(status: number, headers: IncomingHttpHeaders, bytes: Buffer): PageAnswer {
  const html = bytes.toString('utf8');
  return {
    status,
    headers,
    bytes,
    html,
    text: textOf(html),
    pres: all(html, /<pre\b[^>]*>(.*?)<\/pre>/gs).map(([, content = '']) => unescape(withoutTags(content))),
    links: all(html, /<a\b([^>]*)>(.*?)<\/a>/gs).map(([, attributes = '', content = '']) => ({
      href: attribute(attributes, 'href') ?? '',
      text: textOf(content),
    })),
    forms: all(html, /<form\b([^>]*)>(.*?)<\/form>/gs).map(([, attributes = '', content = '']) =>
      parseForm(attributes, content),
    ),
    location: headers.location,
  };
}

function parseForm(attributes: string, content: string): Form {
  const inputs = all(content, /<input\b([^>]*)>/g).flatMap(([, each = '']) => {
    const isTick = /type="(?:checkbox|radio)"/.test(each);
    return isTick && !/\schecked\b/.test(each) ? [] : [[attribute(each, 'name'), attribute(each, 'value')]];
  });
  const areas = all(content, /<textarea\b([^>]*)>(.*?)<\/textarea>/gs).map(([, each = '', text = '']) => [
    attribute(each, 'name'),
    unescape(text),
  ]);
  const selects = all(content, /<select\b([^>]*)>(.*?)<\/select>/gs).map(([, each = '', options = '']) => [
    attribute(each, 'name'),
    chosenIn(options),
  ]);
  const named = [...inputs, ...areas, ...selects].filter(([name]) => name !== undefined);
  return {
    action: attribute(attributes, 'action') ?? '',
    method: attribute(attributes, 'method') === 'post' ? 'post' : 'get',
    fields: Object.fromEntries(named.map(([name, value]) => [name, value ?? ''])) as Record<string, string>,
    text: textOf(content),
  };
}

function chosenIn(content: string): string {
  const options = all(content, /<option\b([^>]*)>(.*?)<\/option>/gs);
  const [, attributes = '', text = ''] =
    options.find(([, each = '']) => /\sselected\b/.test(each)) ?? options[0] ?? [];
  return attribute(attributes, 'value') ?? unescape(text);
}

const all = (text: string, pattern: RegExp) => Array.from(text.matchAll(pattern));

function attribute(attributes: string, name: string): string | undefined {
  const value = attributes.match(new RegExp(`(?:^|\\s)${name}="([^"]*)"`))?.[1];
  return value === undefined ? undefined : unescape(value);
}

/** Values of attributes hold no `>`: the templates escape it. */
const withoutTags = (html: string) => html.replaceAll(/<[^>]*>/g, '');

function textOf(html: string): string {
  const head = /<head>.*?<\/head>/s;
  const inline = /<\/?(?:a|b|abbr|bdi|code|em|kbd|mark|span|strong|time)\b[^>]*>/g;
  const plain = html
    .replace(head, '')
    .replaceAll(inline, '')
    .replaceAll(/<[^>]*>/g, ' ');
  return unescape(plain).replaceAll(/\s+/g, ' ').trim();
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' };

function unescape(html: string): string {
  return html.replaceAll(/&(lt|gt|quot|#39|amp);/g, (_, name: string) => ENTITIES[name] ?? '');
}
