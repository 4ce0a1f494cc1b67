// What the API says of incidents: their list, the conditions as they are now, and a test of the channels that are told of incidents.

import { cached } from '../../base/collections/cached.ts';
import type { ConditionName, Severity } from '../../base/conditions.ts';
import { apiList, scoped } from '../kernel/list/list.operations.ts';
import { defineAction, defineRead, type Operation } from '../kernel/operation/operation.ts';
import { AlertTest, ConditionList } from './contract.ts';
import { incidents } from './queries.ts';
import { awaitChannels } from './test.queries.ts';

export const incidentsList = apiList('incidents', incidents, scoped, { answer: 'A page of incidents.' });

/** How it is with a condition, as far as this replica can tell. */
export type Evaluated = {
  readonly name: ConditionName;
  /** A source, or nothing. */
  readonly subject: string;
  readonly severity: Severity;
  /** Null: it cannot be told now. */
  readonly isSo: boolean | null;
  readonly summary: string;
  readonly value: number | null;
};

export type Watched = {
  /** Never rejects for want of Postgres: what needs it cannot be told then. */
  readonly conditions: () => Promise<readonly Evaluated[]>;
  /** Sends a message to each channel that is configured. */
  readonly sendTest: () => Promise<
    readonly { readonly channel: string; readonly ok: boolean; readonly error?: string | undefined }[]
  >;
};

/** However many consoles are open, one look answers all: it takes a connection that the upkeep shares. */
const LOOK_MAX_AGE_MS = 1_000;

/** `now`: monotonic. */
export function createIncidentOperations({
  watched: { conditions, sendTest },
  now,
}: {
  readonly watched: Watched;
  readonly now: () => number;
}): readonly Operation[] {
  const look = cached({ maxAgeMs: LOOK_MAX_AGE_MS, ask: conditions, now });
  return [
    defineRead({
      id: 'listConditions',
      path: '/conditions',
      tag: 'Incidents',
      summary: 'How it is with each condition now',
      description:
        'As the replica that answers finds it at this moment: what has just begun is so, and becomes an incident if it lasts. While ' +
        'Postgres is away, it says what it knows by itself, also to a token that was valid within the last hour. For tokens that ' +
        'are not limited to some sources, since most conditions are of all of them.',
      role: 'viewer',
      needsAllSources: true,
      worksWithoutDatabase: true,
      answers: { 200: { description: 'All conditions.', schema: ConditionList } },
      run: async () => {
        const items = (await look()).map(({ subject, isSo, ...condition }) => ({
          ...condition,
          subject: subject === '' ? null : subject,
          is_so: isSo,
        }));
        return { status: 200, body: { items } };
      },
    }),
    defineAction({
      id: 'testAlerts',
      path: '/alerts/test',
      tag: 'Incidents',
      summary: 'Send a test message to each channel',
      description:
        'To all channels of `ALERTS_FILE`, whatever severity they take. The answer says for each whether it took the message.',
      role: 'admin',
      needsAllSources: true,
      answers: { 200: { description: 'What came of it, by channel.', schema: AlertTest } },
      run: async (_input, { trx, record }) => {
        await awaitChannels(trx);
        const results = await sendTest();
        const names = (isOk: boolean) =>
          results.filter(({ ok }) => ok === isOk).map(({ channel }) => channel);
        await record({ action: 'alerts.test', detail: { sent: names(true), failed: names(false) } });
        const items = results.map(({ channel, ok, error = null }) => ({ channel, ok, error }));
        return { status: 200, body: { items } };
      },
    }),
  ];
}
