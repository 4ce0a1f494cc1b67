// All pages of the console.

import { deliveryPages } from './deliveries/delivery.pages.ts';
import { deliveries } from './deliveries/pages.ts';
import { destinations } from './destinations/pages.ts';
import { eventPages } from './events/event.pages.ts';
import { events } from './events/pages.ts';
import { exportPage } from './export/pages.ts';
import { incidents } from './incidents/pages.ts';
import { jobs } from './jobs/pages.ts';
import type { Page } from './kernel/console/page.ts';
import { documentPages } from './kernel/document/documents.pages.ts';
import { live, liveStream } from './live/pages.ts';
import { operatorLog } from './operator-log/pages.ts';
import { outboxOrderPages } from './outbox/orders.pages.ts';
import { outbox } from './outbox/pages.ts';
import { overview } from './overview/pages.ts';
import { publications } from './publications/pages.ts';
import { quarantinePages } from './quarantine/pages.ts';
import { choosePages } from './replays/choose.pages.ts';
import { createReplay, newReplay } from './replays/order.pages.ts';
import { replayPages } from './replays/pages.ts';
import { search } from './search/pages.ts';
import { sessionPages } from './sessions/pages.ts';
import { sources } from './sources/pages.ts';
import { source } from './sources/source.pages.ts';
import { jobPages } from './story/pages.ts';
import { tokenPages } from './tokens/pages.ts';

export const PAGES: readonly Page[] = [
  overview,
  incidents,
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
  ...choosePages,
  ...replayPages,
  live,
  liveStream,
  sources,
  source,
  destinations,
  ...tokenPages,
  ...sessionPages,
  operatorLog,
  exportPage,
  ...documentPages,
];
