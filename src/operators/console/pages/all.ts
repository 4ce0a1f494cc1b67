// All pages of the console.

import type { Page } from '../page.ts';
import { jobs } from './jobs.ts';
import { live, liveStream } from './live.ts';
import { overview } from './overview/overview.ts';
import { search } from './search.ts';
import { source } from './sources/source.ts';
import { sources } from './sources/sources.ts';

export const PAGES: readonly Page[] = [overview, jobs, live, liveStream, search, sources, source];
