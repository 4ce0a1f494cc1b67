// Within a replica: ends or stops it between the commit of an event and its publish. The program publishes an event only after
// its commit was answered, so the first basic.publish that it writes tells that this has happened. That frame and all behind it
// are kept back for a while, in which further writes commit; then the replica sends itself the signal. The number of messages
// that were kept back stands in the file TORTURE_REPORT by then.

import { writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { brokerUrls } from '../../src/base/amqp/broker-urls.ts';

type Strike = { readonly signal: NodeJS.Signals; readonly holdMs: number; readonly untilMs: number };
type Write = (...args: unknown[]) => boolean;

/** Of basic.publish: class 60, method 40, behind the head of a method frame. */
const PUBLISH = { frame: 1, classAt: 7, class: 60, methodAt: 9, method: 40 } as const;

const brokerPorts = new Set(
  brokerUrls(process.env['AMQP_URL'] ?? 'amqp://nowhere').map((url) => Number(new URL(url).port)),
);
const report = process.env['TORTURE_REPORT'];
let armed: Strike | undefined;
let kept: (() => void)[] | undefined; // writes to the broker, from the first publish on
let messages = 0;

function isPublish(chunk: unknown): boolean {
  return (
    Buffer.isBuffer(chunk) &&
    chunk.length > PUBLISH.methodAt + 1 &&
    chunk[0] === PUBLISH.frame &&
    chunk.readUInt16BE(PUBLISH.classAt) === PUBLISH.class &&
    chunk.readUInt16BE(PUBLISH.methodAt) === PUBLISH.method
  );
}

function strike(signal: NodeJS.Signals): void {
  if (report !== undefined) writeFileSync(report, String(messages));
  process.kill(process.pid, signal);
  // It was stopped and goes on: what a socket has taken over goes out, whoever leads by now.
  const late = kept ?? [];
  kept = undefined;
  for (const write of late) write();
}

const write = Reflect.get(Socket.prototype, 'write') as Write;
Socket.prototype.write = function keepBack(this: Socket, ...args: unknown[]): boolean {
  if ((armed === undefined && kept === undefined) || !brokerPorts.has(this.remotePort ?? 0))
    return write.apply(this, args);
  const publishes = isPublish(args[0]);
  if (armed !== undefined && publishes && performance.now() < armed.untilMs) {
    kept = [];
    messages = 0;
    setTimeout(strike, armed.holdMs, armed.signal);
    armed = undefined;
  }
  if (kept === undefined) return write.apply(this, args);
  if (publishes) messages += 1;
  kept.push(() => write.apply(this, args));
  return true;
};

/** At the next publish, if it comes within `limitMs`. */
export function strikeAtHandOff(signal: NodeJS.Signals, [holdMs = 0, limitMs = 0]: readonly number[]): void {
  armed = { signal, holdMs, untilMs: performance.now() + limitMs };
}
