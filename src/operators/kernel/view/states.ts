// Words for states, with the colour and the shape that their meaning has.

import { type Content, html } from '../../../web/index.ts';

export type Meaning = 'good' | 'warn' | 'bad' | 'idle';

/** The script of the live page reads it too. */
export const MEANINGS: Readonly<Record<string, Meaning>> = {
  // outcomes of deliveries
  accepted: 'good',
  duplicate: 'idle',
  conflict: 'bad',
  quarantined: 'warn',
  malformed: 'warn',
  unauthorized: 'bad',
  refused: 'idle',
  // states of jobs, kinds of events
  processing: 'idle',
  progress: 'idle',
  completed: 'good',
  failed: 'bad',
  // publications and the outbox
  confirmed: 'good',
  returned: 'warn',
  nacked: 'warn',
  published: 'good',
  pending: 'idle',
  parked: 'warn',
  // quarantine and replays
  waiting: 'warn',
  released: 'good',
  discarded: 'idle',
  running: 'idle',
  paused: 'warn',
  finished: 'good',
  cancelled: 'idle',
  'still quarantined': 'warn',
  // tokens
  valid: 'good',
  expired: 'idle',
  revoked: 'idle',
  // incidents
  open: 'bad',
  ended: 'idle',
  critical: 'bad',
  warning: 'warn',
  // parts of the service
  connected: 'good',
  disconnected: 'bad',
  blocked: 'bad',
  up: 'good',
  down: 'bad',
  alive: 'good',
  silent: 'bad',
};

/** The API says `done` of an event that left the outbox. */
export const publicationState = (word: string): Content => state(word === 'done' ? 'published' : word);

/** A state that we do not know has no colour. */
export function state(word: string | null | undefined): Content {
  if (word === null || word === undefined) return undefined;
  const meaning = Object.hasOwn(MEANINGS, word) ? MEANINGS[word] : undefined;
  return meaning === undefined ? word : html`<span class="state ${meaning}">${word}</span>`;
}
