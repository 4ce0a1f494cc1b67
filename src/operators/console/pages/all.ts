// All pages of the console.

import type { Page } from '../page.ts';
import { deliveryPages } from './deliveries/delivery.ts';
import { deliveries } from './deliveries/list.ts';
import { eventPages } from './events/event.ts';
import { events } from './events/list.ts';
import { jobPages } from './job/job.ts';
import { jobs } from './jobs.ts';
import { publications } from './publications.ts';

export const PAGES: readonly Page[] = [
  jobs,
  ...jobPages,
  deliveries,
  ...deliveryPages,
  events,
  ...eventPages,
  publications,
];
