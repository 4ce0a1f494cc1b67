// The documents in the console: each page leads to what they say about it, and their links lead somewhere.

import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { newRequests } from '../../support/console-pages.ts';
import { type PageAnswer, visitConsole } from '../../support/console.ts';
import { startTestService } from '../../support/service.ts';

const DOCUMENT = /^\/console\/docs\/(?<name>[a-z-]+)(?:#(?<place>.+))?$/;

const headingsOf = ({ html }: PageAnswer) =>
  [...html.matchAll(/<h[23] id="([^"]+)"/g)].map(([, place = '']) => place);

test('each page leads to the section of the documents that is about it', async () => {
  await using relay = await startTestService();
  const visit = await visitConsole(relay, { role: 'admin' });
  const about: Record<string, string | undefined> = {};
  for (const [name, { path, status }] of await newRequests(relay)) {
    if (!name.startsWith('get ') || status !== 200 || name.endsWith('/stream')) continue;
    const { links } = await visit.get(path);
    about[name] = links.find(({ text }) => text === 'Docs')?.href;
  }
  const sections = new Set(headingsOf(await visit.get('/console/docs/console')));
  const astray = Object.entries(about).filter(([, href = '']) => {
    const { name, place = '' } = DOCUMENT.exec(href)?.groups ?? {};
    return name !== 'console' || !sections.has(place);
  });
  expect(astray).toEqual([]);
  expect(about['get /outbox']).toBe('/console/docs/console#about-outbox');
  expect(about['get /job']).toBe('/console/docs/console#about-jobs');
  expect(about['get /destinations']).toBe('/console/docs/console#about-destinations');
});

test('the list has each document, and each link between them leads to a heading', async () => {
  await using relay = await startTestService();
  const visit = await visitConsole(relay, { role: 'viewer' });
  const { links } = await visit.get('/console/docs');
  const names = readdirSync(new URL('../../../docs', import.meta.url))
    .filter((file) => file.endsWith('.md'))
    .map((file) => file.slice(0, -'.md'.length));
  const pages = new Map<string, PageAnswer>();
  for (const name of names) pages.set(name, await visit.get(`/console/docs/${name}`));
  expect(links.map(({ href }) => href)).toEqual(
    expect.arrayContaining(names.map((name) => `/console/docs/${name}`)),
  );
  const broken = [...pages].flatMap(([own, page]) =>
    page.links
      .map(({ href }) => (href.startsWith('#about-') ? `/console/docs/${own}${href}` : href))
      .filter((href) => {
        const { name = '', place } = DOCUMENT.exec(href)?.groups ?? {};
        if (!href.startsWith('/console/docs/')) return false;
        const target = pages.get(name);
        return target === undefined || (place !== undefined && !headingsOf(target).includes(place));
      })
      .map((href) => `${own}: ${href}`),
  );
  expect(broken).toEqual([]);
});

test('a document has its tables, lists and code, and what looks like markup in it is text', async () => {
  await using relay = await startTestService();
  const visit = await visitConsole(relay, { role: 'viewer' });
  const senders = await visit.get('/console/docs/senders');
  expect(senders.html).toContain('<th scope="col">');
  expect(senders.html).toContain('<ol>');
  expect(senders.pres.join('\n')).toContain('SIGNING_SECRET');
  expect(senders.text).toContain('<source>');
  const prose = senders.html.replaceAll(/<pre.*?<\/pre>/gs, '');
  expect(prose).not.toMatch(/<source>|\]\(|\*\*|^```/m);
  for (const name of ['no-such', '..%2fpackage', 'console.md']) {
    expect((await visit.get(`/console/docs/${name}`)).status).toBe(404);
  }
});
