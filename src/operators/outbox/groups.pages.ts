// How much waits in the outbox for which reason, and what can be done to each group.

import type { z } from 'zod';
import { type Content, html } from '../../web/index.ts';
import { NO_ATTEMPT_FAILED, OutboxGroups } from '../groups/contract.ts';
import type { Visit } from '../kernel/console/page.ts';
import { byIn, renderGroups } from '../kernel/group/group.pages.ts';
import { orderHref } from '../kernel/order/selection.pages.ts';
import { state } from '../kernel/view/states.ts';
import { OUTBOX } from './entries.pages.ts';

type Group = z.output<typeof OutboxGroups>['items'][number];
const BY = ['reason', 'queue', 'source'] as const;

/** Above the first page, until one group is chosen. */
export async function outboxGroups(
  { calls, query }: Visit,
  filters: Readonly<Record<string, string>>,
): Promise<Content> {
  if (query.has('cursor') || filters['reason'] !== undefined || filters['queue'] !== undefined)
    return undefined;
  const { job_id: _job, ...wanted } = filters;
  const by = byIn(query, BY);
  const found = await calls.call('groupOutbox', OutboxGroups, { query: { ...wanted, by } });
  const filterOf = (group: Group) => ({
    state: group.state,
    copies: String(group.copies),
    ...(group.value !== null && { [by]: group.value }),
  });
  return renderGroups<Group>({
    path: OUTBOX,
    by,
    choices: BY,
    filters: wanted,
    found,
    filterOf,
    ...(by === 'reason' && { none: NO_ATTEMPT_FAILED }),
    before: [
      {
        head: 'State',
        cell: (group) => html`${state(group.state)}${group.copies && ', copies of replays'}`,
        form: 'brief',
      },
    ],
    actions: calls.may('retryEntries') ? (group) => onGroup(group, wanted, filterOf(group)) : undefined,
  });
}

function onGroup(
  { value, copies, state: now }: Group,
  { source }: Readonly<Record<string, string>>,
  { copies: _copies, queue, ...filter }: Readonly<Record<string, string>>,
): Content {
  if (copies || value === null || queue !== undefined || now === 'pending') return undefined;
  const wanted = { all: 'true', ...(source !== undefined && { source }), ...filter } as const;
  return html`<a href="${orderHref('outbox/retry', wanted)}">Retry all</a> <a class="drastic" href="${orderHref('outbox/discard', wanted)}">Discard all</a>`;
}
