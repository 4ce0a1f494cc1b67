// A real Chromium for tests of pages. How to write one:
//
//   describeInBrowser('the overview', (open) => { …its tests… });   // skipped without Chromium; one browser a file
//
//   await using relay = await startTestService();                     // in a test
//   await using opened = await open({ baseUrl: relay.operators, width: 390, colorScheme: 'dark' });
//   const { page } = opened;
//   await page.goto('/console');
//   expect(await faultsIn(page, LOOKS)).toEqual([]);
//
// - Each `open` is a context of its own, with its own cookies. Open it after the server, so that it is closed before it.
// - A fault fails the test by itself at its end: a violation of the CSP, a request to another origin, an error or a warning in
//   the console, an uncaught error, a request that fails. A test that provokes one, such as an answer with status 403, asserts
//   `await opened.faults()`, which returns them and forgets them.
// - Code for the page is a string, `page.evaluate<string>('document.title')`, since the types of a browser are not Node's. It
//   works without JavaScript and under the CSP too.
// - `npm test` finds the browser and names it in TEST_CHROMIUM. For `vitest run test/browser`, export that yourself.

import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest';
import { watchFaults } from './browser-faults.ts';
import { createFolder, type TestFolder } from './folder.ts';
import { patience } from './patience.ts';

/** The widths that pages are made for, in CSS pixels, and a usual height of each. */
const HEIGHTS = { 1280: 800, 768: 1024, 390: 844 } as const;

/** Below a test's own limit, so that the error names what was waited for. */
const WAIT_MS = patience(15_000);
const LAUNCH_MS = patience(45_000);

const SWITCHES = [
  // No other host has an address, whatever a page asks for.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
  '--no-proxy-server',
  // Drawn without a graphics card, and without a process for it: a quarter of the processor time less for each page.
  '--disable-gpu',
  '--in-process-gpu',
  // Code that is optimized for a page is lost with it: a fifth of the processor time of axe.
  '--js-flags=--no-maglev --no-turbofan',
];

/** How a page is looked at. */
export type Look = { readonly width: keyof typeof HEIGHTS; readonly colorScheme: 'light' | 'dark' };

export type PageOptions = Pick<
  BrowserContextOptions,
  'javaScriptEnabled' | 'colorScheme' | 'permissions' | 'timezoneId'
> & {
  /** `page.goto('/console')` is relative to it. */
  readonly baseUrl: string;
  /** Others than that of `baseUrl` that pages may ask for something. */
  readonly origins?: readonly string[];
  /** 1280 without it. */
  readonly width?: keyof typeof HEIGHTS;
};

export type WatchedPage = AsyncDisposable & {
  readonly page: Page;
  /** For cookies and for further pages, which are watched too. */
  readonly context: BrowserContext;
  /** What went wrong since the last call, one line each. */
  readonly faults: () => Promise<string[]>;
};

export type OpenPage = (options: PageOptions) => Promise<WatchedPage>;

/** A `describe` of tests that open pages. */
export function describeInBrowser(name: string, defineTests: (open: OpenPage) => void): void {
  const program = process.env['TEST_CHROMIUM'];
  const reason = program ? '' : ' (skipped: there is no Chromium on this machine)';
  describe.skipIf(!program)(`${name}${reason}`, () => {
    let home: TestFolder | undefined;
    let browser: Browser | undefined;

    beforeAll(async () => {
      home = await createFolder();
      browser = await launch(program, home);
    });

    afterAll(async () => {
      await browser?.close();
      await home?.[Symbol.asyncDispose]();
    });

    defineTests(async (options) => {
      if (browser === undefined) throw new Error('pages are opened in tests, when the browser has started');
      return openPage(browser, options);
    });
  });
}

/** Shows a page that is loaded already in another way. Style sheets alone depend on it, so the page is not loaded again. */
export async function show(page: Page, { width, colorScheme }: Look): Promise<void> {
  await page.setViewportSize({ width, height: HEIGHTS[width] });
  await page.emulateMedia({ colorScheme });
}

/** All that it writes goes to `home`, and to a profile that Playwright removes. */
function launch(executablePath: string | undefined, home: TestFolder): Promise<Browser> {
  return chromium.launch({
    ...(executablePath && { executablePath }),
    // Chromium's sandbox refuses to work for root.
    chromiumSandbox: process.getuid?.() !== 0,
    args: SWITCHES,
    env: { ...process.env, HOME: home.path('.'), TMPDIR: home.path('.') },
    timeout: LAUNCH_MS,
  });
}

async function openPage(browser: Browser, options: PageOptions): Promise<WatchedPage> {
  const { baseUrl, origins = [], width = 1280, ...others } = options;
  const context = await browser.newContext({
    ...others,
    baseURL: baseUrl,
    viewport: { width, height: HEIGHTS[width] },
  });
  context.setDefaultTimeout(WAIT_MS);
  const faults = await watchFaults(context, [baseUrl, ...origins]);
  let left: string[] = [];
  const close = async () => {
    left = [...left, ...(await faults())];
    await context.close();
  };
  onTestFinished(async () => {
    await close();
    expect(left, 'faults of the pages that the test opened').toEqual([]);
  });
  return { page: await context.newPage(), context, faults, [Symbol.asyncDispose]: close };
}
