// The list of publications.

import { apiList, scoped } from '../kernel/list/list.operations.ts';
import { publications } from './queries.ts';

export const publicationsList = apiList('publications', publications, scoped);
