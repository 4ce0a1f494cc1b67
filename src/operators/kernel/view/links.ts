// The addresses of the console's pages. Every link is made here, so that what a sender wrote is always percent-encoded.

import { givenIn, type Query } from '../console/calls.ts';

const part = encodeURIComponent;

/** An address with parameters; those without a value are left out. */
export function address(path: string, query: Query = {}): string {
  const text = new URLSearchParams(givenIn(query)).toString();
  return text === '' ? path : `${path}?${text}`;
}

/** A job id may be `.` or `..`, which browsers take out of a path, even percent-encoded. */
export const jobHref = (source: string, jobId: string): string =>
  address('/console/job', { source, job_id: jobId });
export const deliveryHref = (id: string): string => `/console/deliveries/${part(id)}`;
/** An event's id holds the job's. */
export const eventHref = (id: string): string => address('/console/event', { id });
export const replayHref = (id: string): string => `/console/replays/${part(id)}`;
export const sourceHref = (name: string): string => address('/console/source', { name });
