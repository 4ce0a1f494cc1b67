// A notification is one event of one job, on its way to one address. Its body is fixed when it is created, so every
// attempt sends the same bytes. The API shows it as a `webhook_delivery`.
//
//   pending ──2xx──▶ delivered
//      │ ╲─ anything else: due again later, attempts + 1
//      └── attempts used up ──▶ given_up
//
// A redelivery is one more attempt in any state. On a notification that is not pending, only its success changes the state.

/** In the order in which a job has them. */
export const EVENT_KINDS = ['progress', 'completed', 'failed'] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

export type Notification = {
  readonly id: string;
  readonly accountId: string;
  readonly jobId: string;
  readonly kind: EventKind;
  readonly url: string;
  readonly body: Buffer;
  readonly createdAt: string;
};

export type Attempt = {
  readonly notificationId: string;
  /** From 1. Redeliveries are counted too. */
  readonly attempt: number;
  readonly startedAt: string;
  readonly durationMs: number;
  /** Also set when the response headers arrived and the rest was late. */
  readonly httpStatus: number | null;
  /** Why there is no complete response; null if there is one, whatever its status. */
  readonly error: string | null;
};

export type NotificationState = 'pending' | 'delivered' | 'given_up';

export type NotificationRecord = {
  readonly notification: Notification;
  readonly state: NotificationState;
  readonly attempts: readonly Attempt[];
};

/** What an attempt leads to. `dueAtMs` is null if there is no further attempt. */
export type NextStep = { readonly state: NotificationState; readonly dueAtMs: number | null };

/** Persistent storage. Each call is atomic, and complete when it returns. */
export type NotificationStore = {
  readonly add: (notification: Notification, dueAtMs: number) => void;
  /**
   * Due ones, ordered by due time, then creation. A later notification of a job never comes before an earlier one that
   * is pending and has had no attempt.
   */
  readonly due: (nowMs: number, limit: number) => readonly { notification: Notification; attempts: number }[];
  readonly nextDueMs: () => number | undefined;
  readonly record: (attempt: Attempt, next: NextStep) => void;
  readonly find: (notificationId: string) => NotificationRecord | undefined;
  /** Newest first. `before`: the id of the last notification of the previous page. */
  readonly list: (filter: {
    accountId: string;
    jobId?: string;
    limit: number;
    before?: string;
  }) => readonly NotificationRecord[];
};
