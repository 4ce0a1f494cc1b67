// The console's pages on the ledger with a month of history: the time of each over HTTP, signed in as a browser is. A page
// may take 300 ms at the 95th percentile.

/** As the table in docs/operators.md shows them. */
export const PAGE_P95_MAX_MS = 300;

export type PageTimes = { readonly page: string; readonly medianMs: number; readonly p95Ms: number };

/** One item of each kind, whose page is asked for. */
export type Shown = {
  readonly source: string;
  readonly jobId: string;
  readonly deliveryId: string;
  readonly eventId: string;
};

const query = (values: Record<string, string>) => new URLSearchParams(values).toString();

/** Addresses below /console. */
export function pagesToAsk({ source, jobId, deliveryId, eventId }: Shown): readonly string[] {
  return [
    '',
    '?range=24h',
    '?range=7d',
    `/search?${query({ q: jobId.slice(0, 6) })}`,
    `/search?${query({ q: deliveryId })}`,
    `/search?${query({ q: jobId.slice(6, 12).toUpperCase() })}`,
    '/jobs',
    '/jobs?state=stuck',
    `/job?${query({ source, job_id: jobId })}`,
    '/deliveries',
    '/deliveries?limit=100',
    '/deliveries?outcome=quarantined',
    '/deliveries?from=24h',
    `/deliveries/${deliveryId}`,
    '/events',
    '/events?kind=failed',
    `/event?${query({ id: eventId })}`,
    '/publications',
    '/publications?result=returned',
    '/outbox',
    '/outbox?state=returned',
    '/quarantine',
    '/replays',
    '/replays/new?kind=failed',
    '/sources',
    '/destinations',
    `/source?${query({ name: source })}`,
    '/live',
    '/tokens',
    '/sessions',
    '/operator-log',
    '/docs/operators',
  ];
}

/** Signs in with a token. @returns the cookie. @throws Error if that does not work */
export async function signIn(operators: string, token: string): Promise<string> {
  const response = await fetch(`${operators}/console/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'Sec-Fetch-Site': 'same-origin' },
    body: new URLSearchParams({ token }),
  });
  await response.arrayBuffer();
  const [cookie] = response.headers.getSetCookie();
  if (cookie === undefined) throw new Error(`signing in to the console: ${response.status}`);
  return cookie.split(';', 1)[0] ?? '';
}

/** In rounds, so that what disturbs the machine for a while disturbs all pages alike. @throws Error for a page that is an error */
export async function measurePages(
  operators: string,
  {
    cookie,
    pages,
    asked,
    warmUp,
  }: { cookie: string; pages: readonly string[]; asked: number; warmUp: number },
): Promise<PageTimes[]> {
  const took = new Map<string, number[]>(pages.map((page) => [page, []]));
  for (let round = -warmUp; round < asked; round += 1) {
    for (const page of pages) {
      const startedMs = performance.now();
      const response = await fetch(`${operators}/console${page}`, {
        redirect: 'manual',
        headers: { cookie },
      });
      const text = await response.text();
      if (response.status >= 400 || response.headers.get('location')?.includes('/sign-in')) {
        throw new Error(`/console${page}: ${response.status} ${text.slice(0, 200)}`);
      }
      if (round >= 0) took.get(page)?.push(performance.now() - startedMs);
    }
  }
  return Array.from(took, ([page, times]) => {
    const sorted = times.toSorted((a, b) => a - b);
    const at = (share: number) =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
    return { page: `/console${page}`, medianMs: at(0.5), p95Ms: at(0.95) };
  });
}
