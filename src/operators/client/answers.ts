// The API's answers as the client reads them: each is the contract's, read leniently.

import type { z } from 'zod';
import { DeliveryDetail } from '../deliveries/contract.ts';
import { Difference } from '../deliveries/difference.contract.ts';
import { DestinationList } from '../destinations/contract.ts';
import { SentCloudEvent } from '../events/cloud-event.contract.ts';
import { EventDetail } from '../events/contract.ts';
import { OutboxGroups, QuarantineGroups } from '../groups/contract.ts';
import { AlertTest, ConditionList } from '../incidents/contract.ts';
import { LISTS, type ListName } from '../lists.contract.ts';
import { ORDERS, type OrderName } from '../orders.contract.ts';
import { OutboxCounts } from '../outbox/contract.ts';
import { ReplayDetail, ReplayPreview } from '../replays/contract.ts';
import { ReplicaList } from '../replicas/contract.ts';
import { SearchAnswer } from '../search/contract.ts';
import { EndedSession, SessionPage, SignInCode } from '../sessions/contract.ts';
import { Sizes } from '../sizes/contract.ts';
import { SourceList } from '../sources/contract.ts';
import { Stats } from '../statistics/contract.ts';
import { Story } from '../story/contract.ts';
import { type Lenient, lenient } from './lenient.ts';

export const answers = {
  delivery: lenient(DeliveryDetail),
  difference: lenient(Difference),
  event: lenient(EventDetail),
  cloudEvent: lenient(SentCloudEvent),
  story: lenient(Story),
  sources: lenient(SourceList),
  replicas: lenient(ReplicaList),
  destinations: lenient(DestinationList),
  sizes: lenient(Sizes),
  conditions: lenient(ConditionList),
  alertTest: lenient(AlertTest),
  search: lenient(SearchAnswer),
  stats: lenient(Stats),
  outboxCounts: lenient(OutboxCounts),
  outboxGroups: lenient(OutboxGroups),
  quarantineGroups: lenient(QuarantineGroups),
  replayDetail: lenient(ReplayDetail),
  replayPreview: lenient(ReplayPreview),
  sessions: lenient(SessionPage.pick({ items: true })),
  endedSession: lenient(EndedSession),
  signInCode: lenient(SignInCode),
};

/** What the client returns, by the names above. */
export type Answers = { readonly [Name in keyof typeof answers]: z.infer<(typeof answers)[Name]> };

/** An item of each list. */
export type Items = { readonly [N in ListName]: Lenient<z.infer<(typeof LISTS)[N]['item']>> };

export const items = Object.fromEntries(
  Object.entries(LISTS).map(([name, { item }]) => [name, lenient<unknown>(item)]),
) as { readonly [N in ListName]: z.ZodType<Items[N]> };

/** What an order did, and what its dry run found. */
export type OrderPage<N extends OrderName> = Lenient<z.infer<(typeof ORDERS)[N]['page']>>;
export type OrderPreview<N extends OrderName> = Lenient<z.infer<(typeof ORDERS)[N]['preview']>>;

export const orders = Object.fromEntries(
  Object.entries(ORDERS).map(([name, { page, preview }]) => [
    name,
    { page: lenient<unknown>(page), preview: lenient<unknown>(preview) },
  ]),
) as unknown as {
  readonly [N in OrderName]: {
    readonly page: z.ZodType<OrderPage<N>>;
    readonly preview: z.ZodType<OrderPreview<N>>;
  };
};
