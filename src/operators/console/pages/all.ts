// All pages of the console.

import type { Page } from '../page.ts';
import { deliveryPages } from './deliveries/delivery.ts';
import { deliveries } from './deliveries/list.ts';
import { eventPages } from './events/event.ts';
import { events } from './events/list.ts';
import { jobPages } from './job/job.ts';
import { jobs } from './jobs.ts';
import { live, liveStream } from './live.ts';
import { operatorLog } from './operator-log.ts';
import { outbox } from './outbox/list.ts';
import { outboxOrderPages } from './outbox/orders.ts';
import { overview } from './overview/overview.ts';
import { publications } from './publications.ts';
import { quarantinePages } from './quarantine.ts';
import { createReplay, newReplay } from './replay-new.ts';
import { replayPages } from './replays.ts';
import { search } from './search.ts';
import { sessionPages } from './sessions.ts';
import { source } from './sources/source.ts';
import { sources } from './sources/sources.ts';
import { tokenPages } from './tokens.ts';

export const PAGES: readonly Page[] = [
  overview,
  search,
  jobs,
  ...jobPages,
  deliveries,
  ...deliveryPages,
  events,
  ...eventPages,
  publications,
  outbox,
  ...outboxOrderPages,
  ...quarantinePages,
  newReplay,
  createReplay,
  ...replayPages,
  live,
  liveStream,
  sources,
  source,
  ...tokenPages,
  ...sessionPages,
  operatorLog,
];
