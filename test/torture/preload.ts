// Loaded into a replica before the program (`node --import`), which knows nothing of it: lets the harness move the
// replica's wall clock, block its event loop, and end or stop it between a commit and its publish. Commands come from the
// port TORTURE_CONTROL, one a line:
//   shift <ms>   from now on Date is off by so much; performance.now() is not, as when a real clock is set
//   stall <ms>   the event loop is blocked for so long
//   hand-off <signal> <ms> <limit ms>   see hand-off-strike.ts

import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { strikeAtHandOff } from './hand-off-strike.ts';

const RealDate = Date;
let shiftMs = 0;

const now = () => RealDate.now() + shiftMs;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as Date,
  apply: () => new RealDate(now()).toString(),
  get: (target, name, receiver) => (name === 'now' ? now : (Reflect.get(target, name, receiver) as unknown)),
});

function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

const port = process.env['TORTURE_CONTROL'];
if (port !== undefined) {
  const socket = connect({ port: Number(port), host: '127.0.0.1' });
  socket.on('error', () => {}); // the harness is gone
  socket.unref();
  createInterface({ input: socket }).on('line', (line) => {
    const [command, ms, ...rest] = line.split(' ');
    if (command === 'shift') shiftMs = Number(ms);
    else if (command === 'stall') stall(Number(ms));
    else if (command === 'hand-off') strikeAtHandOff(ms as NodeJS.Signals, rest.map(Number));
  });
}
