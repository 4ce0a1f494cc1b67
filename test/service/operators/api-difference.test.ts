// What a conflicting delivery says otherwise than the event: for whom, with which lines in the operator log, and until when.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createFolder, type TestFolder } from '../../support/folder.ts';
import { operators } from '../../support/operators.ts';
import { completed, deliver, newJobId, SECRET } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';

let folder: TestFolder;
let relay: TestService;
beforeAll(async () => {
  folder = await createFolder();
  const secrets = { secrets: [SECRET] };
  relay = await startTestService({
    env: { SOURCES_FILE: await folder.write('sources.json', JSON.stringify({ 'team-a': secrets })) },
  });
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/** A completion, and another one that contradicts it. */
async function conflict(): Promise<{ jobId: string; first: string; second: string; path: string }> {
  const jobId = newJobId();
  // JSON.stringify cannot write such a number.
  const text = JSON.stringify(completed(jobId, { serial: 'N' })).replace('"N"', '9223372036854775807');
  await deliver(`${relay.webhooks}/team-a`, text);
  const other = text.replace('9223372036854775807', '9223372036854775806').replace('"webm"', '"<b>"');
  expect(await deliver(`${relay.webhooks}/team-a`, other)).toMatchObject({ body: { outcome: 'conflict' } });
  const [first, second] = await relay.database.query<{ id: string }>(
    'select id from deliveries where job_id = $1 order by received_at, id',
    [jobId],
  );
  const ids = { first: first?.id ?? '', second: second?.id ?? '' };
  return { jobId, ...ids, path: `/deliveries/${ids.second}/difference` };
}

const readings = (subjects: readonly string[]) =>
  relay.database.query<{ subject: string; action: string; source: string; actor: string }>(
    'select subject, action, source, actor from operator_log where subject = any($1::text[]) order by id',
    [subjects],
  );

describe('the difference of a conflict', () => {
  test('names both deliveries, the event, and each field with all its digits', async () => {
    const { first, second, jobId, path } = await conflict();
    const auditor = await operators(relay, { role: 'auditor' });

    const { status, body } = await auditor.get(path);

    expect(status).toBe(200);
    expect(body).toMatchObject({
      delivery: { id: second, outcome: 'conflict' },
      event: { id: `team-a:${jobId}:completed`, delivery_id: first },
      first_delivery: { id: first, outcome: 'accepted' },
      has_more: false,
      differences: [
        { path: '/output_format', event: '"webm"', delivery: '"<b>"', cut: [] },
        { path: '/serial', event: '9223372036854775807', delivery: '9223372036854775806', cut: [] },
      ],
    });
  });

  test('leaves a line of each body in the operator log, at each reading', async () => {
    const { first, second, path } = await conflict();
    const auditor = await operators(relay, { role: 'auditor', sources: ['team-a'] });
    const line = (subject: string) => ({
      subject,
      action: 'body.read',
      source: 'team-a',
      actor: auditor.token.name,
    });
    await auditor.get(path);
    expect(await readings([first, second])).toEqual([line(first), line(second)]);
    await auditor.get(path);
    expect(await readings([first, second])).toHaveLength(4);
  });

  test('is for auditors of the source', async () => {
    const { first, second, path } = await conflict();
    const viewer = await operators(relay, { role: 'viewer' });
    const ofOthers = await operators(relay, { role: 'admin', sources: ['default'] });
    for (const caller of [viewer, ofOthers]) expect(await caller.get(path)).toMatchObject({ status: 403 });
    expect(await readings([first, second])).toEqual([]);
  });

  test('is a 404 that says which body is missing, and then nothing was read', async () => {
    const { first, second, path } = await conflict();
    const auditor = await operators(relay, { role: 'auditor' });
    await relay.database.query('update deliveries set body = null where id = $1', [second]);
    expect(await auditor.get(path)).toMatchObject({
      status: 404,
      body: { error: 'body_not_kept', message: expect.stringContaining('of this delivery') },
    });
    await relay.database.query('delete from deliveries where id = $1', [first]);
    expect(await auditor.get(path)).toMatchObject({
      status: 404,
      body: { error: 'body_not_kept', message: expect.stringContaining('that made the event') },
    });
    expect(await readings([first, second])).toEqual([]);
  });

  test('is a 404 for a delivery that contradicts nothing, or is not there', async () => {
    const { first } = await conflict();
    const auditor = await operators(relay, { role: 'auditor' });
    expect(await auditor.get(`/deliveries/${first}/difference`)).toMatchObject({
      status: 404,
      body: { error: 'no_conflict', message: expect.stringContaining('accepted') },
    });
    expect(await auditor.get(`/deliveries/${crypto.randomUUID()}/difference`)).toMatchObject({
      status: 404,
      body: { error: 'not_found' },
    });
    expect(await auditor.get('/deliveries/7/difference')).toMatchObject({ status: 400 });
  });
});
