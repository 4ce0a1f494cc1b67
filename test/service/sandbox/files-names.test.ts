import { readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { put, startTestFiles } from '../../support/files.ts';
import { openRaw } from '../../support/raw-http.ts';

describe('out of the folder there is no way', () => {
  const paths = [
    '/../secret',
    '/..',
    '/.',
    '/%2e%2e/secret',
    '/%2e%2e%2fsecret',
    '/..%2fsecret',
    '/..%5csecret',
    '/%252e%252e%252fsecret',
    '/sub/../../secret',
    '/./secret',
    '//secret',
    '/..;/secret',
    '/.hidden',
    '/clip.mp4%00',
    '/%00',
    '/clip.mp4/',
    '/clip.mp4%2f',
    '/%ff',
    '/-rf',
    '/C:%5csecret',
    '/a%20b',
    `/${'x'.repeat(101)}`,
    'http://127.0.0.1/../secret',
  ];

  test.each(paths.flatMap((path) => [['GET', path] as const, ['PUT', path] as const]))(
    '%s %s is refused',
    async (method, path) => {
      await using files = await startTestFiles();
      await writeFile(join(files.folder, '.hidden'), 'hidden');
      using connection = await openRaw(files.server.port);
      const body = method === 'PUT' ? 'Content-Length: 3\r\n\r\nnew' : '\r\n';

      connection.write(`${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${body}`);

      const [reply] = await connection.replies();
      expect([400, 404]).toContain(reply?.status);
      expect(connection.text()).not.toMatch(/not to be served|hidden"|tmp/);
      expect((await readdir(files.folder)).toSorted()).toEqual(['.hidden', 'clip.mp4']);
      expect(await readFile(join(files.folder, '../secret'), 'utf8')).toBe('not to be served');
    },
  );

  test('a link is not followed, neither to read nor to write', async () => {
    await using files = await startTestFiles();
    await symlink('../secret', join(files.folder, 'link.mp4'));

    expect((await fetch(files.at('link.mp4'))).status).toBe(404);
    expect((await put(files.at('link.mp4'), 'new')).status).toBe(409);
    expect(await readFile(join(files.folder, '../secret'), 'utf8')).toBe('not to be served');
  });
});
