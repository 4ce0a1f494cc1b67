// All lists by their names: pages and exports are made from them.

import { deliveriesList } from './deliveries/operations.ts';
import { eventsList } from './events/operations.ts';
import { incidentsList } from './incidents/operations.ts';
import { jobsList } from './jobs/operations.ts';
import type { ApiList } from './kernel/list/list.operations.ts';
import type { ListName } from './lists.contract.ts';
import { operatorLogList } from './operator-log/operations.ts';
import { outboxList } from './outbox/operations.ts';
import { publicationsList } from './publications/operations.ts';
import { quarantineList } from './quarantine/operations.ts';
import { replaysList } from './replays/operations.ts';

export const LISTS = {
  jobs: jobsList,
  deliveries: deliveriesList,
  events: eventsList,
  publications: publicationsList,
  quarantine: quarantineList,
  outbox: outboxList,
  incidents: incidentsList,
  'operator-log': operatorLogList,
  replays: replaysList,
} as const satisfies Readonly<Record<ListName, ApiList>>;
