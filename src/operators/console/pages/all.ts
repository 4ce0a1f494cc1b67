// All pages of the console.

import type { Page } from '../page.ts';
import { jobs } from './jobs.ts';

export const PAGES: readonly Page[] = [jobs];
