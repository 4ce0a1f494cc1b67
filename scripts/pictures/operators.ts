// What operators have done before the pictures are taken, each with a token of their own, through the API.

import { idOf, STORY } from './plan.ts';
import type { Stage } from './stage.ts';

type Ask = <Answer>(path: string, body?: unknown) => Promise<Answer>;
type Page<Item> = { readonly items: readonly Item[] };

export async function actAsOperators({ operators, token }: Stage): Promise<void> {
  const admin = askWith(operators, token);
  const onCall = askWith(operators, await newToken(admin, { name: 'on call', role: 'operator' }));
  const billing = askWith(
    operators,
    await newToken(admin, { name: 'billing team', role: 'operator', sources: ['default'] }),
  );
  const audit = askWith(
    operators,
    await newToken(admin, { name: 'yearly audit', role: 'auditor', expires_at: inDays(30) }),
  );
  await newToken(admin, { name: 'prometheus', role: 'scraper' });
  await newToken(admin, { name: 'wall screen', role: 'viewer' });
  await revoke(admin, 'old laptop');

  const { items: quarantined } = await onCall<Page<{ id: string; job_id: string }>>('/quarantine');
  const first = quarantined.find(({ job_id: jobId }) => jobId === idOf(900));
  await onCall('/quarantine/discard', { ids: [first?.id], note: 'the studio will send it again' });
  const {
    items: [returned],
  } = await onCall<Page<{ id: string }>>('/outbox?state=returned');
  await onCall('/outbox/retry', { ids: [returned?.id] });

  const { items: conflicts } = await audit<Page<{ id: string }>>('/deliveries?outcome=conflict');
  await audit(`/deliveries/${conflicts[0]?.id}/body`);
  const { source, jobId } = STORY;
  await billing('/replays', { event_ids: [`${source}:${jobId}:completed`], note: 'the invoice was lost' });
  await onCall('/replays', {
    filter: { source: 'studio', status: 'completed' },
    rate_per_second: 100,
    note: 'the studio had lost its queue',
  });
  const paused = await onCall<{ id: string }>('/replays', {
    filter: { source: 'mobile-app', status: 'failed' },
    rate_per_second: 1,
    note: 'failures for the new alarm',
  });
  await onCall(`/replays/${paused.id}/pause`, {});
  await billing('/replays', {
    filter: { source: 'default', status: 'completed' },
    rate_per_second: 2,
    queue: 'billing',
  });
}

async function newToken(admin: Ask, order: Readonly<Record<string, unknown>>): Promise<string> {
  const { value } = await admin<{ value: string }>('/tokens', order);
  return value;
}

async function revoke(admin: Ask, name: string): Promise<void> {
  const { id } = await admin<{ id: string }>('/tokens', { name, role: 'viewer' });
  await admin(`/tokens/${id}/revoke`, {});
}

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

/** With a body it is a POST. */
function askWith(operators: string, token: string): Ask {
  return async <Answer>(path: string, body?: unknown) => {
    const response = await fetch(`${operators}/api/v1${path}`, {
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return (text.startsWith('{') ? JSON.parse(text) : undefined) as Answer;
  };
}
