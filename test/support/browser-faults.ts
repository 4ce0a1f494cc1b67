// Records what goes wrong in a browser's pages: violations of the CSP, requests to other origins, errors and warnings in the
// console, uncaught errors, failed requests.

import type { BrowserContext, Page } from 'playwright-core';

/** Without JavaScript there are no events, but the console has a line for each violation too. */
const REPORT_VIOLATIONS = `document.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) =>
  reportViolation(effectiveDirective + ' forbids ' + blockedURI))`;

/** The page itself gave it up: it was left, or it closed a stream. */
const GIVEN_UP = 'net::ERR_ABORTED';
/** Their content is in the page already. */
const INNER = new Set(['data:', 'blob:', 'about:']);

/**
 * Watches all pages of the context, from now on.
 * @returns a function that returns what was found since its last call, one line each
 */
export async function watchFaults(
  context: BrowserContext,
  urls: readonly string[],
): Promise<() => Promise<string[]>> {
  const origins = new Set(urls.map((url) => new URL(url).origin));
  let found: string[] = [];
  const note = (line: string) => void found.push(line);

  function noteOrigin(url: string): void {
    const { protocol, origin } = new URL(url);
    if (!INNER.has(protocol) && !origins.has(origin)) note(`request to another origin: ${url}`);
  }

  await context.exposeBinding('reportViolation', (_page, what: string) => note(`CSP: ${what}`));
  await context.addInitScript(REPORT_VIOLATIONS);
  context.on('page', (page) => page.on('websocket', (socket) => noteOrigin(socket.url())));
  context.on('request', (request) => noteOrigin(request.url()));
  context.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? 'unknown';
    if (reason !== GIVEN_UP) note(`request failed (${reason}): ${request.url()}`);
  });
  context.on('console', (line) => {
    if (['error', 'warning', 'assert'].includes(line.type()))
      note(`console ${line.type()}: ${line.text()} (${line.location().url})`);
  });
  context.on('weberror', (event) => note(`uncaught ${String(event.error())}`));

  return async () => {
    await Promise.all(context.pages().map(settle));
    const lines = found;
    found = [];
    return lines;
  };
}

/** What a page has reported comes before its answer. The second one is after the tasks that wait to run in it. */
async function settle(page: Page): Promise<void> {
  try {
    await page.evaluate('1');
    await page.evaluate('1');
  } catch {
    // It was closed, or is just being left.
  }
}
