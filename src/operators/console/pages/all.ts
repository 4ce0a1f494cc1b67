// All pages of the console.

import type { Page } from '../page.ts';
import { jobs } from './jobs.ts';
import { operatorLog } from './operator-log.ts';
import { outboxPages } from './outbox.ts';
import { quarantinePages } from './quarantine.ts';
import { createReplay, newReplay } from './replay-new.ts';
import { replayPages } from './replays.ts';
import { sessionPages } from './sessions.ts';
import { tokenPages } from './tokens.ts';

export const PAGES: readonly Page[] = [
  jobs,
  newReplay,
  createReplay,
  ...replayPages,
  ...outboxPages,
  ...quarantinePages,
  ...tokenPages,
  ...sessionPages,
  operatorLog,
];
