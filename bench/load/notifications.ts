// Makes the notifications that the benchmark sends: bodies as the conversion service writes them (service interface 6.2), all
// different, each identified by its number. Pure: the same number of the same run gives the same bytes.
//
// The mix, five notifications to four jobs: two of a job with a life cycle (progress, and later completed), two of
// jobs that only complete, one of a job that failed.
//
//   number mod 5   0                      1                                  2, 3        4
//   notification   progress of its job    completed of number 0's job        completed   failed
//                                         1,000 notifications earlier

import { createHash, createHmac, type KeyObject } from 'node:crypto';

const MIX = 5;
/** So far apart that a job's progress is answered before its end is sent, as in reality, where hours lie between them. */
const LIFE_CYCLE = 1_000;

/** The most that a notification needs without padding. Each is padded to exactly `bodyBytes`. */
export const SMALLEST_BODY_BYTES = 512;

/** Text that does not compress: base64 digits of hashes. */
const FILLER = makeFiller(256 * 1024);

const CREATED_AT = '2026-11-21T09:58:17.204Z';
const ENDED_AT = '2026-11-21T10:02:41.917Z';

/** The run's name in the job ids of seed.ts. */
export const SEEDED_RUN = 'seed';

/** The number that names the job of this notification. */
function jobNumber(number: number): number {
  return number % MIX === 1 && number >= LIFE_CYCLE ? number - 1 - LIFE_CYCLE : number;
}

/** Scattered over an index, as random ids are: consecutive ids would be unrealistically fast to insert. */
function jobId(run: string, number: number): string {
  const scattered = Math.imul(number ^ 0x5bd1e995, 0x9e3779b1) >>> 0;
  const mixed = Math.imul(scattered ^ (scattered >>> 15), 0x85ebca6b) >>> 0;
  return `job_${mixed.toString(16).padStart(8, '0')}_${run}_${number}`;
}

/** The id of the event that the notification becomes, as subscribers see it. */
export function eventIdOf(run: string, number: number): string {
  const place = number % MIX;
  const suffix = place === 0 ? 'processing:45' : place === 4 ? 'failed' : 'completed';
  return `default:${jobId(run, jobNumber(number))}:${suffix}`;
}

/** The number of the notification of this event; undefined if it is not of this run. */
export function numberOf(run: string, eventId: string): number | undefined {
  const [, foundRun, digits, status] = /_([^_:]+)_(\d+):(processing|completed|failed)/.exec(eventId) ?? [];
  if (digits === undefined || foundRun !== run) return undefined;
  const job = Number(digits);
  return job % MIX === 0 && status === 'completed' ? job + 1 + LIFE_CYCLE : job;
}

/** @param bodyBytes the exact size of the body, padded with a field that is not in the schema */
export function bodyOf(run: string, number: number, bodyBytes: number): string {
  const plain = JSON.stringify(fieldsOf(jobId(run, jobNumber(number)), number % MIX));
  const padding = bodyBytes - plain.length - ',"trace":""'.length;
  if (padding < 0) throw new Error(`a body of ${bodyBytes} bytes is too small for a notification`);
  return `${plain.slice(0, -1)},"trace":"${filler(number, padding)}"}`;
}

/** A whole HTTP/1.1 request, ready to be written. */
export function requestOf(
  { key, path, host }: { key: KeyObject; path: string; host: string },
  body: string,
): string {
  const signature = createHmac('sha256', key).update(body).digest('hex');
  return (
    `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: conversion-service\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
    `X-Service-Signature: sha256=${signature}\r\n\r\n${body}`
  );
}

function fieldsOf(id: string, place: number): Record<string, string | number> {
  if (place === 0)
    return {
      job_id: id,
      status: 'processing',
      progress_percentage: 45,
      estimated_completion: ENDED_AT,
    };
  if (place === 4)
    return {
      job_id: id,
      status: 'failed',
      job_type: 'video',
      progress_percentage: 45,
      error_message: 'the input file is corrupted or cannot be read',
      error_code: 'INVALID_INPUT',
      created_at: CREATED_AT,
      failed_at: ENDED_AT,
    };
  return {
    job_id: id,
    status: 'completed',
    job_type: 'video',
    progress_percentage: 100,
    cost_micros: 1_250_000,
    cost_cents: 125,
    processing_time_seconds: 264,
    output_size_bytes: 10_485_760,
    input_format: 'mp4',
    output_format: 'webm',
    created_at: CREATED_AT,
    completed_at: ENDED_AT,
  };
}

function filler(number: number, length: number): string {
  const start = (number * 7_919) % FILLER.length;
  const rest = FILLER.slice(start, start + length);
  return rest.length === length ? rest : rest + FILLER.slice(0, length - rest.length);
}

function makeFiller(length: number): string {
  let text = '';
  for (let part = 0; text.length < length; part++)
    text += createHash('sha512').update(`filler ${part}`).digest('base64url');
  return text.slice(0, length);
}
