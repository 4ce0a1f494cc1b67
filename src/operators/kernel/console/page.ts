// What a page of the console is: its address, and the function that answers it. Pages know neither Express nor the database:
// they call operations (calls.ts) and return a view.

import type { Readiness } from '../../../http/index.ts';
import type { Content } from '../../../web/index.ts';
import type { Asker, Performed } from '../operation/perform.ts';
import type { Calls } from './calls.ts';
import type { SameAs } from './same-as.ts';

/** One request to a page. */
export type Visit = {
  readonly caller: Asker;
  /** Parts of the address by their names, decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** What a form sent. Empty for a GET. */
  readonly form: URLSearchParams;
  readonly calls: Calls;
  /** The names of the configured sources that the caller may see. */
  readonly sources: readonly string[];
  /** `https://ops.example`: as the browser asked. */
  readonly origin: string;
  /** `http://127.0.0.1:8080`: where the intake of this replica listens, with the host that the browser asked for. */
  readonly intake: string;
  /** What `/readyz` says of this replica. */
  readonly readiness: () => Promise<Readiness>;
  /** Aborted when the browser disconnects. */
  readonly signal: AbortSignal;
};

/** A page to show. The frame around it is the layout's. */
export type View = {
  /** In the browser's tab; also the heading unless `heading` is given. */
  readonly title: string;
  readonly heading?: Content;
  /** To the right of the heading: what makes a new one. */
  readonly beside?: Content;
  readonly body: Content;
  readonly status?: number;
  /** How to ask for the same with the command line and curl. */
  readonly sameAs?: SameAs | undefined;
  /** The part of the page that the script may load again every few seconds, where nobody is typing. */
  readonly refreshS?: number;
};

/** Instead of a view: another address of the console, bytes to save, or a stream of text. */
export type Elsewhere = { readonly seeOther: string };
export type Download = { readonly bytes: Buffer; readonly filename: string };
export type Streamed = Extract<Performed, { stream: unknown }>;

export type Reply = View | Elsewhere | Download | Streamed;

export type Page = {
  readonly method: 'get' | 'post';
  /** Below `/console`, in Express' form: `/jobs/:source/:job_id`. Empty for the console itself. */
  readonly path: '' | `/${string}`;
  /** The operations that it calls at once. Without the role for all of them, the page is a 403. */
  readonly needs: readonly string[];
  readonly answer: (visit: Visit) => Promise<Reply>;
};

/** A page that is read: its state is in its address. */
export const get = (path: Page['path'], needs: readonly string[], answer: Page['answer']): Page => ({
  method: 'get',
  path,
  needs,
  answer,
});

/** What a form does. It changes something, or leaves a line in the operator log. */
export const post = (path: Page['path'], needs: readonly string[], answer: Page['answer']): Page => ({
  method: 'post',
  path,
  needs,
  answer,
});
