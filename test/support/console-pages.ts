// One honest request to each page of the console, and who may send it. The tests of roles and of forged requests are made from
// this table: a page that it does not name fails both.

import { randomUUID } from 'node:crypto';
import type { Role } from '../../src/operators/kernel/access/roles.ts';
import { PAGES } from '../../src/operators/pages.ts';
import { askConsole, type Ask, COOKIE_NAME, type PageAnswer } from './console.ts';
import { operators } from './operators.ts';
import { completed, deliver, newJobId } from './sender.ts';
import { newToken } from './operators.ts';
import type { TestService } from './service.ts';
import { OUTBOX } from './outbox.ts';

/** As `PAGES` has it: `post /replays/:id/pause`. */
export type PageName = `${'get' | 'post'} ${string}`;

export type PageRequest = {
  /** The lowest role that may. */
  readonly role: Role;
  /** What it says about tokens, sessions or operators concerns all sources. */
  readonly isForAllSources?: true;
  /** From the root. */
  readonly path: string;
  readonly form?: Readonly<Record<string, string>>;
  /** The answer to those who may. */
  readonly status: 200 | 303;
};

export const nameOf = ({ method, path }: { method: 'get' | 'post'; path: string }): PageName =>
  `${method} ${path}`;

export const PAGE_NAMES: readonly PageName[] = PAGES.map(nameOf);

/** The page that a link or a form of the console leads to. */
export function pageAt(method: 'get' | 'post', href: string): PageName | undefined {
  const path = new URL(href, 'http://localhost/').pathname.slice('/console'.length);
  // The fixed ones come first, as in the console: `/replays/new` is no replay.
  const found = PAGES.filter((page) => page.method === method).find((page) => {
    const pattern = page.path.replaceAll(/:\w+/g, '[^/]+');
    return new RegExp(`^${pattern}$`).test(path);
  });
  return found && nameOf(found);
}

/** What the requests are about: new for each visitor, since an action changes it. All of the source `default`. */
async function makeThings(relay: TestService) {
  const [conflicting, strange, waiting] = [newJobId(), newJobId(), newJobId()];
  await deliver(relay.webhooks, completed(conflicting));
  await deliver(relay.webhooks, completed(conflicting, { cost_micros: 1 }));
  await deliver(relay.webhooks, completed(strange, { status: 'unheard_of' }));
  await deliver(relay.webhooks, completed(waiting));
  const delivery = async (job: string, outcome: string) => {
    const rows = await relay.database.query<{ id: string }>(
      'select id from deliveries where job_id = $1 and outcome = $2',
      [job, outcome],
    );
    const [{ id } = { id: '' }] = rows;
    return id;
  };
  const eventId = `default:${waiting}:completed`;
  const { post } = await operators(relay);
  const { body } = await post<{ id: string }>('/replays', { event_ids: [eventId], rate_per_second: 1 });
  const { token } = await newToken(relay.database);
  const [session] = await relay.database.query<{ id: string }>(
    `insert into sessions (id, value_hash, token_id, expires_at)
     values ('ses_' || $1, sha256($1::text::bytea), $2, now() + interval '1 hour') returning id`,
    [randomUUID(), token.id],
  );
  return {
    jobId: conflicting,
    eventId,
    conflict: await delivery(conflicting, 'conflict'),
    quarantined: await delivery(strange, 'quarantined'),
    replay: body.id,
    token: token.id,
    session: session?.id ?? '',
  };
}

const read = (role: Role, path: string, status: 200 | 303 = 200): PageRequest => ({ role, path, status });
const act = (role: Role, path: string, form: Record<string, string>, status: 200 | 303 = 200) => ({
  role,
  path,
  form: { key: randomUUID(), ...form },
  status,
});
const press = (path: string, form: Record<string, string> = {}): PageRequest => ({
  role: 'auditor',
  path,
  form,
  status: 200,
});
/** It changes nothing, and leads to a form that does. */
const leadOn = (path: string, form: Record<string, string>, status: 200 | 303): PageRequest => ({
  role: 'operator',
  path,
  form,
  status,
});
const ofAll = (request: PageRequest): PageRequest => ({ ...request, isForAllSources: true });

/** With things of their own, and keys that were not used yet. In an order in which each can be sent. */
export async function newRequests(relay: TestService): Promise<ReadonlyMap<PageName, PageRequest>> {
  const { jobId, eventId, conflict, quarantined, replay, token, session } = await makeThings(relay);
  const job = { source: 'default', job_id: jobId };
  const [outbox, quarantine] = ['/console/outbox', '/console/quarantine'];
  const delivery = `/console/deliveries/${conflict}`;
  const [one] = await relay.database.query<{ id: string }>(
    `select sequence::text as id from ${OUTBOX} where job_id = $1 and replay_id is null`,
    [eventId.split(':')[1]],
  );
  const entry = one?.id ?? '';
  const event = new URLSearchParams({ id: eventId }).toString();
  const note = 'a test';
  return new Map<PageName, PageRequest>([
    ['get ', read('viewer', '/console')],
    ['get /incidents', read('viewer', '/console/incidents')],
    ['get /docs', read('viewer', '/console/docs')],
    ['get /docs/:name', read('viewer', '/console/docs/console')],
    ['get /search', read('viewer', '/console/search?q=job_')],
    ['get /jobs', read('viewer', '/console/jobs')],
    ['get /job', read('viewer', `/console/job?${new URLSearchParams(job).toString()}`)],
    ['post /job', press('/console/job', { ...job, body: conflict })],
    ['get /deliveries', read('viewer', '/console/deliveries')],
    ['get /deliveries/:id', read('viewer', delivery)],
    ['get /deliveries/:id/body', read('viewer', `${delivery}/body`, 303)],
    ['get /deliveries/:id/download', read('viewer', `${delivery}/download`, 303)],
    ['get /deliveries/:id/difference', read('viewer', `${delivery}/difference`, 303)],
    ['post /deliveries/:id/body', press(`${delivery}/body`)],
    ['post /deliveries/:id/download', press(`${delivery}/download`)],
    ['post /deliveries/:id/difference', press(`${delivery}/difference`)],
    ['get /events', read('viewer', '/console/events')],
    ['get /event', read('viewer', `/console/event?${event}`)],
    ['post /event', press('/console/event', { id: eventId })],
    ['post /event/download', press('/console/event/download', { id: eventId })],
    ['get /publications', read('viewer', '/console/publications')],
    ['get /outbox', read('viewer', outbox)],
    ['get /outbox/park', read('operator', `${outbox}/park?ids=${entry}`)],
    ['post /outbox/park', act('operator', `${outbox}/park`, { ids: entry })],
    ['get /outbox/retry', read('operator', `${outbox}/retry?ids=${entry}`)],
    ['post /outbox/retry', act('operator', `${outbox}/retry`, { ids: entry })],
    ['get /outbox/discard', read('operator', `${outbox}/discard?ids=${entry}`)],
    ['post /outbox/discard', act('operator', `${outbox}/discard`, { ids: entry })],
    ['get /quarantine', read('viewer', quarantine)],
    ['get /quarantine/release', read('operator', `${quarantine}/release?ids=${quarantined}`)],
    ['post /quarantine/release', act('operator', `${quarantine}/release`, { ids: quarantined })],
    ['get /quarantine/discard', read('operator', `${quarantine}/discard?ids=${quarantined}`)],
    ['post /quarantine/discard', act('operator', `${quarantine}/discard`, { ids: quarantined, note })],
    ['get /replays', read('viewer', '/console/replays')],
    ['get /replays/new', read('operator', '/console/replays/new?source=default')],
    ['post /replays/new', act('operator', '/console/replays/new', { event_ids: eventId }, 303)],
    ['post /replays/choose', leadOn('/console/replays/choose', { event_ids: eventId }, 303)],
    ['post /publications/replay', leadOn('/console/publications/replay', { source: 'default' }, 200)],
    ['get /replays/:id', read('viewer', `/console/replays/${replay}`)],
    ['post /replays/:id/pause', act('operator', `/console/replays/${replay}/pause`, {}, 303)],
    ['post /replays/:id/resume', act('operator', `/console/replays/${replay}/resume`, {}, 303)],
    ['get /replays/:id/cancel', read('operator', `/console/replays/${replay}/cancel`)],
    ['post /replays/:id/cancel', act('operator', `/console/replays/${replay}/cancel`, {}, 303)],
    ['get /live', read('viewer', '/console/live')],
    ['get /live/stream', read('viewer', '/console/live/stream')],
    ['get /sources', read('viewer', '/console/sources')],
    ['get /source', read('viewer', '/console/source?name=default')],
    ['get /destinations', ofAll(read('viewer', '/console/destinations'))],
    ['get /tokens', ofAll(read('admin', '/console/tokens'))],
    ['get /tokens/new', ofAll(read('admin', '/console/tokens/new'))],
    ['post /tokens/new', ofAll(act('admin', '/console/tokens/new', { name: note, role: 'viewer' }))],
    ['get /tokens/:id/revoke', ofAll(read('admin', `/console/tokens/${token}/revoke`))],
    ['get /sessions', ofAll(read('admin', '/console/sessions'))],
    ['get /sessions/:id/end', ofAll(read('admin', `/console/sessions/${session}/end`))],
    ['post /sessions/:id/end', ofAll(act('admin', `/console/sessions/${session}/end`, {}))],
    ['post /tokens/:id/revoke', ofAll(act('admin', `/console/tokens/${token}/revoke`, {}))],
    ['post /export', press('/console/export', { list: 'jobs' })],
    ['get /operator-log', ofAll(read('auditor', '/console/operator-log'))],
  ]);
}

/** Sends a request of the table as a browser does that has this session, or none. */
export function send(
  relay: Pick<TestService, 'operators'>,
  name: PageName,
  { path, form }: Pick<PageRequest, 'path' | 'form'>,
  { session, headers = {} }: { session: string | undefined; headers?: Ask['headers'] },
): Promise<PageAnswer> {
  return askConsole(relay, path, {
    method: name.startsWith('post') ? 'POST' : 'GET',
    ...(form && { form }),
    headers: { ...(session !== undefined && { cookie: `${COOKIE_NAME}=${session}` }), ...headers },
    // It goes on until somebody leaves.
    ...(name === 'get /live/stream' && { leavesAtOnce: true }),
  });
}

/** Everything that a request could change, as one hash a table. When something was last used is no change. */
export async function stateOf({ database }: TestService): Promise<Readonly<Record<string, string | null>>> {
  const hashes = CHANGEABLE.map(
    (name) =>
      `(select md5(string_agg(row, ' ' order by row)) from
         (select (to_jsonb(t) - 'last_used_at')::text as row from ${name} t) rows) as ${name}`,
  );
  const [state = {}] = await database.query<Record<string, string | null>>(`select ${hashes.join(', ')}`);
  return state;
}

const CHANGEABLE = [
  'deliveries',
  'events',
  'idempotency_keys',
  'jobs',
  'operator_log',
  'outbox_batches',
  'outbox_held',
  'outbox_version',
  'publication_batches',
  'publications',
  'replay_copies',
  'replays',
  'sessions',
  'sign_in_codes',
  'tokens',
] as const;
