// What the dashboard's pages are made from, and who looks at them.

import type { Response } from 'express';
import type { Logger } from '../../base/log/log.ts';
import type { Assets } from '../../web/index.ts';
import type { Account, Accounts } from '../accounts/accounts.ts';
import type { Limits } from '../accounts/limits.ts';
import type { Sessions } from '../accounts/sessions.ts';
import type { CreateJobOptions } from '../api/create-job.ts';
import type { Engine } from '../engine/engine.ts';
import type { Deliverer } from '../webhooks/deliverer.ts';
import type { NotificationStore } from '../webhooks/notifications.ts';
import type { SendingPlan } from '../webhooks/sender.ts';
import type { Once } from './once.ts';

export const DASHBOARD_PATH = '/dashboard';

export type DashboardOptions = CreateJobOptions & {
  readonly accounts: Accounts;
  readonly sessions: Sessions;
  readonly limits: Limits;
  readonly engine: Pick<Engine, 'kind' | 'version'>;
  readonly notifications: Pick<NotificationStore, 'find' | 'list'>;
  readonly deliverer: Pick<Deliverer, 'redeliver'>;
  /** Where an account has set nothing itself. */
  readonly webhooks: SendingPlan;
  /** The file server with the sample clips. */
  readonly filesUrl: string | undefined;
  /** The receiver that the form for a conversion proposes. */
  readonly receiverUrl: string | undefined;
  readonly log: Logger;
};

export type Site = DashboardOptions & { readonly assets: Assets; readonly once: Once };

/** For pages behind the sign-in, where there always is one. */
export function accountOf(response: Response): Account {
  return response.locals['account'] as Account;
}
