// What a replica remembers of itself: when something was last so, and for how long.

import { Counter, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createSigns } from '../../../src/watch/signs.ts';

function createReplica() {
  const registry = new Registry();
  const ended = new Counter({
    name: 'tallyhook_connections_ended_total',
    help: '.',
    labelNames: ['face', 'reason'],
    registers: [registry],
  });
  const state = { connected: true, blocked: false, takesDeliveries: true };
  let nowMs = 0;
  const signs = createSigns({
    metrics: { registry },
    states: { broker: () => state, takesDeliveries: () => Promise.resolve(state.takesDeliveries) },
    sampleMs: 5_000,
    now: () => nowMs,
  });
  /** Samples until this second. */
  const until = async (second: number) => {
    while (nowMs < second * 1_000) {
      nowMs += 5_000;
      await signs.sample();
    }
  };
  /** No samples for so many seconds. */
  const standStill = (seconds: number) => (nowMs += seconds * 1_000);
  return { state, ended, signs, until, standStill };
}

test('what was never so is left out', async () => {
  const { signs, until } = createReplica();
  await until(100);
  expect(signs.read()).toEqual({});
});

test('an outage has a length, and then an age; what is away now has no age', async () => {
  const { state, signs, until } = createReplica();
  await until(100);
  state.takesDeliveries = false;
  await until(175);
  expect(signs.read()).toEqual({ 'postgres-away': 0, 'postgres-away-for': 70 });
  state.takesDeliveries = true;
  await until(200);
  expect(signs.read()).toEqual({ 'postgres-away': 20, 'postgres-away-for': 75 });
});

test('one that comes back for a moment is one outage, and one that ended long ago is another', async () => {
  const { state, signs, until } = createReplica();
  const awayFrom = async (from: number, to: number) => {
    await until(from);
    state.connected = false;
    await until(to);
    state.connected = true;
  };
  await awayFrom(100, 160);
  await awayFrom(170, 200);
  expect(signs.read()).toEqual({ 'broker-away': 0, 'broker-away-for': 95 });
  await awayFrom(300, 310);
  await until(320);
  expect(signs.read()).toEqual({ 'broker-away': 10, 'broker-away-for': 5 });
});

test('an outage between whose samples the process stood still is one outage', async () => {
  const { state, signs, until, standStill } = createReplica();
  await until(100);
  state.takesDeliveries = false;
  await until(110);
  standStill(60);
  await until(180);
  expect(signs.read()).toEqual({ 'postgres-away': 0, 'postgres-away-for': 75 });
});

test('a broker that blocks takes nothing either', async () => {
  const { state, signs, until } = createReplica();
  state.blocked = true;
  await until(20);
  expect(signs.read()).toMatchObject({ 'broker-away': 0, 'broker-blocked': 0, 'broker-blocked-for': 15 });
});

test('a counter that grows is a sign, of these reasons alone', async () => {
  const { ended, signs, until } = createReplica();
  ended.inc({ face: 'intake', reason: 'idle' });
  await until(10);
  expect(signs.read()).toEqual({});
  ended.inc({ face: 'intake', reason: 'room' });
  await until(40);
  expect(signs.read()).toEqual({ 'connections-dropped': 25 });
});
