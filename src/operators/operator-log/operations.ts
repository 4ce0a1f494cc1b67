// The list of what operators did.

import { apiList } from '../kernel/list/list.operations.ts';
import { forbidden } from '../kernel/operation/operation.ts';
import { operatorLog } from './queries.ts';

export const operatorLogList = apiList(
  'operator-log',
  operatorLog,
  (asked, caller) => {
    if (caller.sources !== null) throw forbidden(); // for the export, which is of any list
    return asked;
  },
  { role: 'auditor', needsAllSources: true, answer: 'A page of the log.' },
);
