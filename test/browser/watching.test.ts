// The watchers of pages see what they are for: each test serves a page with one fault, and a page without any.

import { expect, test } from 'vitest';
import { describeInBrowser, type OpenPage, type PageOptions } from '../support/browser.ts';
import { axeViolations, overflow } from '../support/page-checks.ts';
import { hang, type Receiver, startReceiver } from '../support/receiver.ts';

const POLICY = `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'`;
const OTHER = 'http://other.example';

type Content = [content: string, files: Record<string, [type: string, text: string]>];

/** One server with the files of a page: by its path, a file's type and text. `/` is the page, with this content. */
async function startPage(content: string, files: Content[1] = {}, policy = POLICY) {
  const page = `<!doctype html><html lang="en"><title>A page</title><main><h1>A page</h1>${content}</main></html>`;
  const all: typeof files = { '/': ['text/html', page], '/favicon.ico': ['image/png', ''], ...files };
  const server = await startReceiver((response, { path }) => {
    const [type, text] = all[path] ?? ['text/plain', ''];
    response.writeHead(path in all ? 200 : 404, { 'content-type': type, 'content-security-policy': policy });
    response.end(text);
  });
  return { ...server, baseUrl: `http://127.0.0.1:${server.port}` } satisfies Receiver & PageOptions;
}

type Site = Awaited<ReturnType<typeof startPage>>;

async function visit(open: OpenPage, { baseUrl }: Site, options: Partial<PageOptions> = {}) {
  const watched = await open({ baseUrl, ...options });
  await watched.page.goto('/');
  return watched;
}

const script = (text: string): Content => [
  '<script src="/page.js"></script>',
  { '/page.js': ['text/javascript', text] },
];

const style = (text: string): Content => [
  '<link rel="stylesheet" href="/page.css"><p id="wide">Some text</p>',
  { '/page.css': ['text/css', text] },
];

describeInBrowser('a watched page', (open) => {
  test.for([
    { width: 1280, colorScheme: 'light', javaScriptEnabled: true },
    { width: 768, colorScheme: 'dark', javaScriptEnabled: true },
    { width: 390, colorScheme: 'dark', javaScriptEnabled: false },
  ] as const)(
    'without a fault has none: $width pixels, $colorScheme, JavaScript $javaScriptEnabled',
    async (options) => {
      await using site = await startPage(
        ...script(`document.querySelector('h1').textContent += ' that runs'`),
      );
      await using opened = await visit(open, site, options);
      const { page } = opened;
      const seen = `[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]`;
      expect(await page.evaluate(seen)).toEqual([options.width, options.colorScheme === 'dark']);
      expect(await page.textContent('h1')).toBe(options.javaScriptEnabled ? 'A page that runs' : 'A page');
      expect(await axeViolations(page)).toEqual([]);
      expect(await overflow(page)).toEqual([]);
      expect(await opened.faults()).toEqual([]);
    },
  );

  test('shows what the CSP forbids', async () => {
    await using site = await startPage('<p style="color: red">Red</p>');
    await using opened = await visit(open, site);
    expect((await opened.faults()).toSorted()).toEqual([
      'CSP: style-src-attr forbids inline',
      expect.stringMatching(/^console error: .* Content Security Policy/),
    ]);
    expect(await opened.faults()).toEqual([]);
  });

  test('shows what the CSP forbids while its JavaScript is off', async () => {
    await using site = await startPage('<p style="color: red">Red</p>');
    await using opened = await visit(open, site, { javaScriptEnabled: false });
    expect(await opened.faults()).toEqual([
      expect.stringMatching(/^console error: .* Content Security Policy/),
    ]);
  });

  test('shows requests to another origin, and none leaves the machine', async () => {
    await using other = await startPage('');
    const asks = `fetch('${OTHER}/').catch(() => {}); new WebSocket('ws://other.example/')`;
    await using site = await startPage(...script(asks), '');
    await using opened = await open({ baseUrl: site.baseUrl });
    const { page, context } = opened;
    // To leave a page gives up its requests, which is no fault: they have to be made and to fail first.
    const failed = context.waitForEvent('requestfailed', (request) => request.url() === `${OTHER}/`);
    await Promise.all([failed, page.waitForEvent('websocket'), page.goto('/')]);
    await page.goto(`${OTHER}/page`).catch(() => {});
    await (await context.newPage()).goto(other.baseUrl);
    const found = await opened.faults();
    for (const url of [`${OTHER}/`, `${OTHER}/page`, 'ws://other.example/', `${other.baseUrl}/`])
      expect(found).toContain(`request to another origin: ${url}`);
    for (const url of [`${OTHER}/`, `${OTHER}/page`])
      expect(found).toContain(`request failed (net::ERR_NAME_NOT_RESOLVED): ${url}`);
    await using named = await open({ baseUrl: site.baseUrl, origins: [other.baseUrl] });
    await named.page.goto(other.baseUrl);
    expect(await named.faults()).toEqual([]);
  });

  test('shows what goes wrong in it', async () => {
    await using site = await startPage(
      ...script(`
        console.error('a mistake');
        console.warn('a doubt');
        Promise.reject(new Error('nobody caught it'));
        fetch('/missing');
        new Image().src = 'http://127.0.0.1:1/';
        throw new Error('nor this');
      `),
    );
    await using opened = await visit(open, site);
    await opened.page.waitForLoadState('networkidle');
    const found = (await opened.faults()).join('\n');
    expect(found).toContain('console error: a mistake');
    expect(found).toContain('console warning: a doubt');
    expect(found).toContain('uncaught Error: nobody caught it');
    expect(found).toContain('uncaught Error: nor this');
    expect(found).toContain('the server responded with a status of 404');
    expect(found).toContain('request failed (csp): http://127.0.0.1:1/');
  });

  test('shows what goes wrong in another window, too', async () => {
    await using site = await startPage('<a href="/second" target="_blank">Second</a>', {
      '/second': ['text/html', '<p style="color: red">Red</p>'],
    });
    await using opened = await visit(open, site);
    const second = opened.context.waitForEvent('page');
    await opened.page.click('a');
    await (await second).waitForLoadState();
    expect(await opened.faults()).toContain('CSP: style-src-attr forbids inline');
  });

  test('that is left gives up its requests, which is no fault', async () => {
    await using slow = await startReceiver(hang);
    await using site = await startPage(...script(`fetch('${slow.url}')`), '');
    await using opened = await visit(open, site, { origins: [slow.url] });
    await slow.untilReceived(1);
    await opened.page.goto('/page.js');
    expect(await opened.faults()).toEqual([]);
  });

  test.fails('fails the test by a fault that it does not assert', async () => {
    await using site = await startPage('<p style="color: red">Red</p>');
    await using opened = await visit(open, site);
    expect(await opened.page.title()).toBe('A page');
  });

  test.for([true, false])('shows what keeps people out, with JavaScript %s', async (javaScriptEnabled) => {
    await using site = await startPage('<img src="/favicon.ico">');
    await using opened = await visit(open, site, { javaScriptEnabled });
    expect(await axeViolations(opened.page)).toEqual([
      'image-alt (critical): Images must have alternative text: img',
    ]);
  });

  test('shows a text that is too pale in one of the two colours', async () => {
    await using site = await startPage(
      ...style(
        '@media (prefers-color-scheme: dark) { body { background: #222 } p { color: #333 } h1 { color: #fff } }',
      ),
    );
    await using light = await visit(open, site, { colorScheme: 'light' });
    await using dark = await visit(open, site, { colorScheme: 'dark' });
    expect(await axeViolations(light.page)).toEqual([]);
    expect(await axeViolations(dark.page)).toEqual([
      expect.stringMatching(/^color-contrast \(serious\).*: #wide$/),
    ]);
  });

  test('shows what is wider than the window, and what only scrolls in its place is not', async () => {
    await using wide = await startPage(...style('#wide { width: 700px }'));
    await using narrow = await visit(open, wide, { width: 390 });
    expect(await overflow(narrow.page)).toEqual([expect.stringMatching(/^7\d\d > 390 pixels$/), 'p#wide']);
    await using roomy = await visit(open, wide, { width: 768 });
    expect(await overflow(roomy.page)).toEqual([]);
    await using scrolling = await startPage(...style('main { overflow-x: auto } #wide { width: 700px }'));
    await using fitting = await visit(open, scrolling, { width: 390 });
    expect(await overflow(fitting.page)).toEqual([]);
  });

  test('shares no cookies with that of another test', async () => {
    await using site = await startPage('');
    await using first = await visit(open, site);
    await first.page.evaluate(`document.cookie = 'session=first'`);
    await using second = await visit(open, site);
    expect(await first.page.evaluate('document.cookie')).toBe('session=first');
    expect(await second.page.evaluate('document.cookie')).toBe('');
  });
});
