// What a message tells, and what people read of it in any form. Nothing here comes from a delivery: a source's name is the most that a
// message has of it.

import type { Severity } from '../../base/conditions.ts';

/** An incident at the moment that is told. */
export type Told = {
  /** Of the message: the same each time it is sent. */
  readonly id: string;
  readonly moment: 'begin' | 'end' | 'test';
  /** Null for a test. */
  readonly incident: string | null;
  readonly condition: string;
  readonly severity: Severity;
  /** A source, or nothing. */
  readonly subject: string;
  readonly summary: string;
  readonly beganAt: Date;
  readonly endedAt: Date | null;
  readonly eventsWaited: number;
};

/** Where the console is, and where people have put the runbook; without a slash at the end. */
export type Links = { readonly console?: string | undefined; readonly runbook?: string | undefined };

/** A summary is one sentence. Slack cuts texts of more than 40,000 characters, and Teams refuses messages of more than 28 KB. */
const SUMMARY_MAX_LENGTH = 1_000;

/** Undefined without an address of the console. */
export const consoleLink = ({ console }: Links): string | undefined => console && `${console}/console`;

/** Undefined without an address of the runbook. A test is of no condition. */
export const runbookLink = ({ condition, moment }: Told, { runbook }: Links): string | undefined =>
  runbook && (moment === 'test' ? runbook : `${runbook}#${condition}`);

export function titleOf({ moment, severity, condition, subject }: Told): string {
  if (moment === 'test') return 'Test of alerts';
  const what = subject === '' ? condition : `${condition} of ${subject}`;
  return moment === 'end' ? `Over: ${what}` : `${severity === 'critical' ? 'Critical' : 'Warning'}: ${what}`;
}

export const summaryOf = ({ summary }: Told): string =>
  summary.length <= SUMMARY_MAX_LENGTH ? summary : `${summary.slice(0, SUMMARY_MAX_LENGTH - 1)}…`;

/** From when to when, in UTC: readers are in any time zone. */
export function timesOf({ beganAt, endedAt }: Told): string {
  if (endedAt === null) return `since ${utc(beganAt)}`;
  return `from ${utc(beganAt)} to ${utc(endedAt)} (${span(endedAt.getTime() - beganAt.getTime())})`;
}

/** Undefined if none waited. */
export function waitedOf({ eventsWaited, endedAt }: Told): string | undefined {
  if (eventsWaited === 0) return undefined;
  const count = `${eventsWaited.toLocaleString('en-US')} ${eventsWaited === 1 ? 'event' : 'events'}`;
  return endedAt === null ? `${count} waited so far` : `${count} waited at most`;
}

const utc = (moment: Date) => `${moment.toISOString().slice(0, 19).replace('T', ' ')} UTC`;

function span(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 1) return `${Math.round(ms / 1_000)} s`;
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
