// Messages of incidents, composed: the file of channels, the loop that sends what is due, the calls of the heartbeat address, and a
// test of all channels. It has no connection of its own.

import { randomUUIDv7 } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Severity } from '../../base/conditions.ts';
import type { Config } from '../../config.ts';
import type { Parts } from '../../base/parts.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { type Channel, watchAlertsFile } from './channels-file.ts';
import { createDueMessages, type HeldLease } from './due.ts';
import { contentFor } from './forms.ts';
import { createHeartbeatCalls } from './heartbeat-calls.ts';
import { createSend } from './requests.ts';
import { createSending } from './sending.ts';
import type { Told } from './told.ts';

export type TestResult = { readonly channel: string; readonly ok: boolean; readonly error?: string };

export type Messages = {
  readonly channels: {
    /** The present ones. Ask each time, since a reload replaces them. */
    readonly current: () => readonly {
      readonly name: string;
      readonly takes: (severity: Severity) => boolean;
    }[];
  };
  readonly start: () => void;
  /** Reads ALERTS_FILE again. Never rejects. */
  readonly reload: () => Promise<void>;
  /** Sends a test to each channel at once, with or without the lease. What it says of a failure does not name the address. Never rejects. */
  readonly sendTest: () => Promise<readonly TestResult[]>;
};

/** At a stop, for requests under way: most receivers answer in less. What is cut is sent again by the next holder of the lease. */
const LAST_ANSWERS_MS = 1_000;

/** @param parts.isWell whether the looks of the watch succeed and no critical incident is open @throws ConfigError */
export async function composeMessages(
  { alerts: { file } }: Pick<Config, 'alerts'>,
  parts: Pick<Parts, 'metrics' | 'now' | 'log' | 'started' | 'graceMs'> & {
    connection: Pick<DatabaseConnection, 'execute'>;
    lease: HeldLease;
    isWell: () => boolean;
  },
): Promise<Messages> {
  const { connection, lease, metrics, log, started, graceMs } = parts;
  const alerts = await watchAlertsFile({ path: file, log });
  started.defer(alerts.close);
  const cutting = new AbortController();
  const send = createSend({ signal: cutting.signal });
  const sending = createSending({ ...parts, alerts, send, due: createDueMessages(connection, lease) });
  const heartbeat = createHeartbeatCalls({ ...parts, alerts, send });
  let testing: Promise<readonly TestResult[]> | undefined;

  async function test(channel: Channel): Promise<TestResult> {
    const told = testMessage();
    const answer = await send(channel.url, contentFor(channel, told, alerts.current().links));
    const result = { channel: channel.name };
    if (answer === undefined) return { ...result, ok: false, error: 'the service stops' };
    metrics.alertRequests.inc({ result: answer.isTaken ? 'sent' : 'failed' });
    return answer.isTaken ? { ...result, ok: true } : { ...result, ok: false, error: answer.error };
  }

  started.defer(async () => {
    sending.end();
    const ended = Promise.all([sending.settled(), heartbeat.end(), testing]);
    await Promise.race([ended, sleep(Math.min(LAST_ANSWERS_MS, graceMs()))]);
    cutting.abort();
    await ended;
  });
  return {
    channels: { current: () => alerts.current().channels },
    start: () => {
      sending.start();
      heartbeat.start();
    },
    reload: alerts.reload,
    // Who asks while one is under way is told of the same one: nobody is sent several.
    sendTest: () =>
      (testing ??= Promise.all(alerts.current().channels.map(test)).finally(() => {
        testing = undefined;
      })),
  };
}

function testMessage(): Told {
  return {
    id: randomUUIDv7(),
    moment: 'test',
    incident: null,
    condition: 'test',
    severity: 'warning',
    subject: '',
    summary: 'An operator asked for this message. Incidents will be told here in the same form.',
    beganAt: new Date(),
    endedAt: null,
    eventsWaited: 0,
  };
}
