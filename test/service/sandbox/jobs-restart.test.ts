// A restart during jobs: unfinished ones run again, nothing is lost or sent twice, and progress never decreases.

import { mkdir, readdir } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { findFfmpeg } from '../../../src/sandbox/engine/ffmpeg.ts';
import { type Job, newJob } from '../../../src/sandbox/jobs/job.ts';
import { APPLICATION_ID, MIGRATIONS } from '../../../src/sandbox/store/schema.ts';
import { openStore } from '../../../src/sandbox/store/store.ts';
import { createFolder } from '../../support/folder.ts';
import { startOrigin } from '../../support/origin.ts';
import { startReceiver } from '../../support/receiver.ts';
import { runCommand } from '../../support/cli.ts';
import { startProcess } from '../../support/replica.ts';
import {
  ask,
  clientOf,
  createJob,
  startTestFiles,
  startTestSandbox,
  untilEnded,
} from '../../support/sandbox.ts';
import { waitFor } from '../../support/waits.ts';

const ffmpeg = await findFfmpeg();

describe('a restart in the middle of a job', () => {
  test('begins it again from the start; its progress is told on from where it was, and its end once', async () => {
    await using folder = await createFolder();
    await using files = await startTestFiles();
    await using receiver = await startReceiver();
    const data = folder.path('sandbox.db');
    const fields = {
      input_url: files.input,
      output_url: files.output('output.webm'),
      webhook_url: receiver.url,
    };
    const first = await startTestSandbox({ data, simulatedStepMs: 400 });
    const { job_id: jobId } = await createJob(first, fields);
    const { token } = first;
    const progressOf = async (url: string) =>
      (await ask<Job>(url, 'GET', `/conversion_jobs/${jobId}`, { token })).body.progress_percentage;
    await expect.poll(() => progressOf(first.url)).toBeGreaterThanOrEqual(40);
    const reached = await progressOf(first.url);
    await first.sandbox.stop();

    await using second = await startTestSandbox({ data, simulatedStepMs: 200 });
    const seen: number[] = [];
    await waitFor(
      async () => {
        seen.push(await progressOf(second.url));
        if (seen.at(-1) !== 100) throw new Error(`at ${seen.at(-1)} %`);
      },
      { timeout: 15_000, interval: 50 },
    );
    expect(Math.min(...seen)).toBeGreaterThanOrEqual(reached);
    expect(seen).toEqual(seen.toSorted((left, right) => left - right));
    const ended = await untilEnded(clientOf(second.url, token), jobId);
    expect(ended.status).toBe('completed');
    expect(ended.processing_time_seconds).toBeGreaterThanOrEqual(3); // of both together: ten steps of 200 ms at least, rounded up

    await expect.poll(() => receiver.received.at(-1)?.said['status']).toBe('completed');
    const told = receiver.received.map(({ said }) => Number(said['progress_percentage']));
    expect(told).toEqual([...new Set(told)].toSorted((left, right) => left - right));
    expect(second.log.find(({ msg }) => msg === 'jobs begin again')).toMatchObject({ jobs: 1 });
  });

  test('also after a SIGKILL of the program, with what was promised before it', async () => {
    await using folder = await createFolder();
    await using files = await startTestFiles();
    const data = folder.path('sandbox.db');
    const created = await runCommand(['sandbox', 'tokens', 'create', '--name', 'restart', '--data', data]);
    const token = created.stdout.trim();
    const start = async () => {
      const env = { TMPDIR: folder.path('.') }; // where a killed process leaves its files
      const command = startProcess(
        ['sandbox', 'serve', '--port', '0', '--engine', 'simulated', '--allow-local', '--data', data],
        { env },
      );
      const url = await waitFor(
        () => {
          const line = command
            .stdout()
            .split('\n')
            .find((text) => text.includes('"listening"'));
          if (line === undefined) throw new Error(`it does not listen: ${command.stderr()}`);
          return (JSON.parse(line) as { url: string }).url;
        },
        { timeout: 15_000, interval: 20 },
      );
      return { command, url };
    };
    const first = await start();
    const fields = { input_url: files.input, output_url: files.output('output.webm') };
    const { job_id: jobId } = await createJob(clientOf(first.url, token), fields);
    await expect
      .poll(
        async () =>
          (await ask<Job>(first.url, 'GET', `/conversion_jobs/${jobId}`, { token })).body.progress_percentage,
      )
      .toBeGreaterThanOrEqual(10);
    first.command.child.kill('SIGKILL');
    await first.command.exited;

    const second = await start();
    await using serving = second.command;
    expect(await untilEnded(clientOf(second.url, token), jobId)).toMatchObject({ status: 'completed' });
    serving.child.kill('SIGTERM');
    expect(await serving.exited).toEqual({ code: 0, signal: null });
  });

  test('a job that was interrupted too often without a word has failed', async () => {
    await using folder = await createFolder();
    await using origin = await startOrigin(() => {});
    const data = folder.path('sandbox.db');
    const fresh = newJob(
      {
        job_type: 'video',
        input_url: `${origin.url}/input.mp4`,
        output_url: `${origin.url}/output.webm`,
        input_format: 'mp4',
        output_format: 'webm',
        webhook_url: null,
      },
      new Date().toISOString(),
    );
    const { token } = await prepare(data, fresh, 5);
    await using on = await startTestSandbox({ data });
    expect(await untilEnded(clientOf(on.url, token), fresh.job_id)).toMatchObject({
      status: 'failed',
      error_code: 'INTERNAL',
      error_message: 'the conversion was interrupted too often',
    });
    expect(origin.asked).toEqual([]);
  });

  test('any number of orderly restarts is none of its business', async () => {
    await using folder = await createFolder();
    await using origin = await startOrigin(() => {});
    const data = folder.path('sandbox.db');
    let jobId: string | undefined;
    for (let restart = 0; restart < 7; restart++) {
      await using on = await startTestSandbox({ data });
      jobId ??= (await createJob(on, { input_url: `${origin.url}/input.mp4` })).job_id;
      await expect.poll(() => origin.asked.length).toBe(restart + 1);
      expect((await on.call('GET', `/conversion_jobs/${jobId}`)).body).toMatchObject({
        status: 'processing',
      });
    }
  });
});

/** A data file with one job that was started this often. */
async function prepare(data: string, job: Job, starts: number): Promise<{ token: string }> {
  const on = await startTestSandbox({ data });
  await on.sandbox.stop();
  const store = openStore(data);
  const account = store.accounts.find({ name: 'default' });
  store.jobs.add(job, account?.id ?? '');
  for (let start = 0; start < starts; start++) store.jobs.countStart(job.job_id);
  store.close();
  return { token: on.token };
}

describe('the data file', () => {
  test.skipIf(ffmpeg === undefined)(
    'has the work of conversions beside it, and what a crash left there is cleared',
    async () => {
      await using folder = await createFolder();
      const data = folder.path('sandbox.db');
      await mkdir(`${data}-work/left-behind`, { recursive: true });
      const on = await startTestSandbox({ data, engine: 'ffmpeg' });
      expect(await readdir(`${data}-work`)).toEqual([]);
      await on.sandbox.stop();
      expect((await readdir(folder.path('.'))).toSorted()).toEqual(['sandbox.db', 'sandbox.db-serving']);
    },
  );

  test('belongs to one sandbox at a time', async () => {
    await using folder = await createFolder();
    const data = folder.path('sandbox.db');
    const first = await startTestSandbox({ data });
    await expect(startTestSandbox({ data })).rejects.toThrow('--data is in use by another sandbox');
    expect(await first.call('GET', '/me')).toMatchObject({ status: 200 });
    await first.sandbox.stop();
    const second = await startTestSandbox({ data });
    expect(await ask(second.url, 'GET', '/me', { token: first.token })).toMatchObject({ status: 200 });
    await second.sandbox.stop();
  });

  test('of an older program keeps its accounts, and gets what came since', async () => {
    await using folder = await createFolder();
    const data = folder.path('sandbox.db');
    const older = new DatabaseSync(data);
    older.exec(`${MIGRATIONS[0]};
      insert into accounts values ('acct_old', 'default', 'free', 'the-secret-of-before', null, 'progress', 3, '2026-01-15T10:30:00.000Z');
      pragma application_id = ${APPLICATION_ID}; pragma user_version = 1`);
    older.close();
    const store = openStore(data);
    expect(store.accounts.find({ name: 'default' })).toMatchObject({
      id: 'acct_old',
      maxAttempts: 3,
      retryFirstMs: null,
      retryFactor: null,
      retryMaxMs: null,
      timeoutMs: null,
    });
    expect(store.accounts.signingSecret('acct_old')).toBe('the-secret-of-before');
    store.close();
  });

  test('of a newer program, of another one, or of none is refused and left as it is', async () => {
    await using folder = await createFolder();
    const newer = folder.path('newer.db');
    await (await startTestSandbox({ data: newer })).sandbox.stop();
    const other = folder.path('other.db');
    for (const [file, statement] of [
      [newer, 'pragma user_version = 99'],
      [other, 'create table notes (text)'],
    ] as const) {
      using database = new DatabaseSync(file);
      database.exec(statement);
    }
    const rubbish = await folder.write('rubbish.db', 'no database at all '.repeat(100));
    await expect(startTestSandbox({ data: newer })).rejects.toMatchObject({ code: 'schema_newer' });
    await expect(startTestSandbox({ data: other })).rejects.toThrow('belongs to another program');
    await expect(startTestSandbox({ data: rubbish })).rejects.toThrow('not a database');
  });

  test('a sandbox that cannot listen leaves it free', async () => {
    await using folder = await createFolder();
    await using origin = await startOrigin(() => {});
    const data = folder.path('sandbox.db');
    await expect(startTestSandbox({ data, port: origin.port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    const on = await startTestSandbox({ data });
    await on.sandbox.stop();
    await on.sandbox.stop();
  });
});
