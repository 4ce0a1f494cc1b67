// The console as a router below `/console`: its files, signing in, and its pages. Every request passes the same steps: refuse
// what another site's page sends, count it against a limit, find its session, check the role, answer, or show the error.

import { type NextFunction, type Request, type RequestHandler, type Response, Router } from 'express';
import { describeError } from '../../../base/errors.ts';
import { hostInUrl } from '../../../base/net/host-in-url.ts';
import { closeIfUnread, ownOrigins, type Readiness } from '../../../http/index.ts';
import { BASE_STYLE, createAssets, ICON, pageHeaders, readForm, seeOther } from '../../../web/index.ts';
import type { Authenticator } from '../access/authenticator.ts';
import { sendHead, sendStream } from '../operation/answers.ts';
import { ApiError, type Operation } from '../operation/operation.ts';
import { admit, isAllowed, type Perform } from '../operation/perform.ts';
import { createCalls, findIn } from './calls.ts';
import { errorView, SESSION_ENDED } from './error-view.ts';
import { createGate, type GateOptions } from './gate.ts';
import { createLayout } from './layout.ts';
import type { Page, View } from './page.ts';
import { createSignIn, SIGN_IN_PATH } from './sign-in.ts';
import { visitorOf } from './visitors.ts';

export const CONSOLE = '/console';

export type ConsoleOptions = GateOptions & {
  readonly operations: readonly Operation[];
  readonly pages: readonly Page[];
  readonly perform: Perform;
  readonly authenticator: Pick<Authenticator, 'recognize' | 'identify'>;
  /** The names of the configured sources. */
  readonly sources: () => readonly string[];
  readonly readiness: () => Promise<Readiness>;
  /** Where this replica listens for senders. The port is 0 until it is known. */
  readonly intake: () => { readonly host: string; readonly port: number };
};

const own = (name: string) => new URL(`assets/${name}`, import.meta.url);
/** The script's modules find each other by these names. */
const MODULES = [
  'console.js',
  'copy.js',
  'forms.js',
  'keyboard.js',
  'live.js',
  'live-filter.js',
  'live-rows.js',
  'live-stream.js',
  'live-worker.js',
  'preview.js',
  'refresh.js',
  'say.js',
  'ticks.js',
  'times.js',
] as const;
const FILES = {
  'base.css': BASE_STYLE,
  'icon.svg': ICON,
  'console.css': own('console.css'),
  ...Object.fromEntries(MODULES.map((name) => [name, own(name)])),
};

export function createConsole(options: ConsoleOptions): Router {
  const { perform, tokenConnection, log } = options;
  const operation = findIn(options.operations);
  const assets = createAssets(CONSOLE, FILES);
  const layout = createLayout({ assets });
  const router = Router({ caseSensitive: true, strict: true });

  /** The frame that fits the visitor. */
  function show(request: Request, response: Response, view: View): void {
    closeIfUnread(request, response);
    const caller = visitorOf(response)?.caller;
    if (caller === undefined) return layout.showToStranger(response, view);
    const may = (id: string) => isAllowed(operation(id), caller);
    layout.show(response, view, { caller, path: pathOf(request), search: searchOf(request), may });
  }

  function handle(page: Page): RequestHandler {
    return async (request, response) => {
      const caller = visitorOf(response)?.caller;
      if (caller === undefined) return askToSignIn(request, response);
      response.locals['page'] = page.path;
      for (const id of page.needs) admit(operation(id), caller);
      const disconnect = new AbortController();
      response.once('close', () => disconnect.abort());
      const { signal } = disconnect;
      const reply = await page.answer({
        caller,
        params: request.params as Record<string, string>,
        query: new URL(request.originalUrl, 'http://localhost').searchParams,
        form: page.method === 'post' ? await readForm(request) : new URLSearchParams(),
        calls: createCalls({ operation, perform, caller, signal }),
        sources: visible(options.sources(), caller.sources),
        origin: originOf(request),
        intake: intakeOf(request, options.intake()),
        readiness: options.readiness,
        signal,
      });
      if ('seeOther' in reply) return seeOther(response, reply.seeOther);
      if ('bytes' in reply) return download(response, reply);
      if ('stream' in reply && request.method === 'HEAD') return sendHead(response, reply);
      if ('stream' in reply) return sendStream(response, reply, { signal, log });
      show(request, response, reply);
    };
  }

  function askToSignIn(request: Request, response: Response): void {
    if (request.method === 'GET' || request.method === 'HEAD') {
      return seeOther(response, `${CONSOLE}${SIGN_IN_PATH}?next=${encodeURIComponent(request.originalUrl)}`);
    }
    show(request, response, SESSION_ENDED);
  }

  function showError(error: unknown, request: Request, response: Response, _next: NextFunction): void {
    if (response.headersSent) return void response.destroy();
    show(
      request,
      response,
      errorView(error, (unexpected) => {
        log.error({ err: describeError(unexpected), page: response.locals['page'] }, 'unexpected error');
      }),
    );
  }

  router.use(pageHeaders());
  router.use(assets.router);
  router.use(createGate(options));
  router.use(createSignIn({ ...options, connection: tokenConnection, show: layout.showToStranger }));
  for (const page of options.pages) page.needs.forEach(operation); // throws for one that there is not
  for (const page of options.pages) router[page.method](page.path === '' ? '/' : page.path, handle(page));
  router.use((request, response) => {
    if (visitorOf(response)?.caller === undefined) return askToSignIn(request, response);
    throw new ApiError(404, 'not_found', 'there is no page at this address');
  });
  router.use(showError);
  return router;
}

function download(response: Response, { bytes, filename }: { bytes: Buffer; filename: string }): void {
  response
    .set({
      'Content-Type': 'application/octet-stream',
      'Content-Disposition': `attachment; filename="${filename.replaceAll(/[^\w.-]/g, '_')}"`,
    })
    .send(bytes);
}

const visible = (sources: readonly string[], limit: readonly string[] | null) =>
  limit === null ? sources : sources.filter((source) => limit.includes(source));

const pathOf = (request: Request) => `${CONSOLE}${request.path === '/' ? '' : request.path}`;

const searchOf = (request: Request) =>
  request.path === '/search'
    ? (new URL(request.originalUrl, 'http://localhost').searchParams.get('q') ?? '')
    : '';

/** As the browser asked, so that a line to paste works from where the operator sits. */
const originOf = (request: Request) => ownOrigins(request)[0] ?? '';

/** A replica that listens on all its addresses is asked at the one that the browser used. */
function intakeOf(request: Request, { host, port }: { host: string; port: number }): string {
  const url = new URL(`http://localhost:${port}`);
  const isAny = ['0.0.0.0', '::'].includes(host);
  url.hostname = isAny ? request.hostname : hostInUrl(host);
  return url.origin;
}
