// What is to be told, every attempt to tell it, and where both are kept. A notice is one event of one job on its
// way to one address; its bytes are fixed when it is made, so that every attempt sends the same.
//
//   pending ──2xx──▶ delivered
//      │ ╲─ anything else: due again after a while, attempts + 1
//      └── attempts used up ──▶ given_up
//
// A redelivery is one attempt more from any state; only its success changes the state of what was not pending.

export type EventKind = 'completed' | 'failed' | 'progress';

export type Notice = {
  readonly id: string;
  readonly accountId: string;
  readonly jobId: string;
  readonly kind: EventKind;
  readonly url: string;
  readonly body: Buffer;
  readonly createdAt: string;
};

export type Attempt = {
  readonly noticeId: string;
  /** From 1. Redeliveries count on. */
  readonly attempt: number;
  readonly startedAt: string;
  readonly durationMs: number;
  /** Also there when the answer's head came and the rest was late. */
  readonly httpStatus: number | null;
  /** Why there is no whole answer; null where there is one, whatever its status. */
  readonly error: string | null;
};

export type NoticeState = 'pending' | 'delivered' | 'given_up';

export type NoticeRecord = {
  readonly notice: Notice;
  readonly state: NoticeState;
  readonly attempts: readonly Attempt[];
};

/** What outlives the program. Every call is atomic, and done when it returns. */
export type NoticeStore = {
  readonly add: (notice: Notice, dueAtMs: number) => void;
  /**
   * Due ones in order of dueAt, then creation; a job's later notice never before an earlier one that is still
   * pending with no attempt.
   */
  readonly due: (nowMs: number, limit: number) => readonly { notice: Notice; attempts: number }[];
  readonly nextDueMs: () => number | undefined;
  readonly record: (attempt: Attempt, next: { state: NoticeState; dueAtMs: number | null }) => void;
  readonly find: (noticeId: string) => NoticeRecord | undefined;
  /** The newest first. `before`: the id of a notice, to go on from there. */
  readonly list: (filter: {
    accountId: string;
    jobId?: string;
    limit: number;
    before?: string;
  }) => readonly NoticeRecord[];
};
