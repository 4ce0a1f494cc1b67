// Incidents on pages: the overview says what goes on once, and what was; the list leads to where each is decided.

import { expect, test } from 'vitest';
import { visitConsole } from '../../support/console.ts';
import { insertIncident } from '../../support/incidents.ts';
import { deliver, newJobId } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';

test('the overview adds the times of an incident to what it says already, and a line for what it does not', async () => {
  await using relay = await startTestService();
  const { database } = relay;
  const visit = await visitConsole(relay, { role: 'viewer' });
  await deliver(relay.webhooks, { job_id: newJobId(), status: 'unheard_of' });

  const before = await until(
    'the delivery waits',
    async () => {
      const page = await visit.get('/console');
      return page.text.includes('1 delivery in quarantine') ? page : undefined;
    },
    { limitMs: 20_000 },
  );
  expect(before.text).toContain('An operator can release or discard them. Not an incident yet. What to do');
  expect(before.text).not.toContain('Recent incidents');

  await insertIncident(database, {
    condition: 'quarantine',
    severity: 'warning',
    summary: '1 delivery waits in quarantine.',
    beganAgo: '20 minutes',
    decidedBy: ['Ada'],
  });
  // Of a condition that only a newer replica knows, so nobody here can say that it is over.
  await insertIncident(database, {
    condition: 'moon-away',
    severity: 'critical',
    summary: 'The moon is away.',
    beganAgo: '3 hours',
    eventsWaited: 12,
  });
  const { text, links } = await visit.get('/console');
  expect(text).toContain('Something is not working.');
  expect(text).toMatch(
    /The moon is away\. Since \d{4}-\d\d-\d\d [\d:]+, for 3 hours; up to 12 events waited\. What to do/,
  );
  expect(text).toMatch(
    /An operator can release or discard them\. Since [^;]+, for 20 minutes; decided by Ada\. What to do/,
  );
  const toDo = links.filter(({ text: word }) => word === 'What to do').map(({ href }) => href);
  expect(toDo.toSorted()).toEqual(['/console/docs/runbook', '/console/docs/runbook#about-quarantine']);
  expect(text).not.toContain('1 delivery waits in quarantine');
  expect(links.filter(({ text: word }) => word === '1 delivery in quarantine')).toHaveLength(1);
});

test('the overview lists what was, and what is over for the moment, and all is well', async () => {
  await using relay = await startTestService();
  const { database } = relay;
  await insertIncident(database, {
    condition: 'broker-away',
    severity: 'critical',
    beganAgo: '9 hours',
    endedAgo: '7 hours',
    eventsWaited: 1_234,
    decidedBy: ['Ada', 'Grace'],
  });
  await insertIncident(database, {
    condition: 'disk-full',
    severity: 'critical',
    beganAgo: '9 days',
    endedAgo: '8 days',
  });
  await insertIncident(database, { condition: 'parked', severity: 'critical', beganAgo: '30 minutes' });
  const visit = await visitConsole(relay, { role: 'viewer' });
  const { text, links } = await until(
    'a leader with a heartbeat',
    async () => {
      const page = await visit.get('/console');
      return page.text.includes('All is well') ? page : undefined;
    },
    { limitMs: 20_000 },
  );
  expect(text).toMatch(
    /Recent incidents .* open critical parked .* ended critical broker-away .* 2 h 0 min 1,234 Ada, Grace a test of broker-away All incidents/,
  );
  expect(text).not.toContain('disk-full');
  expect(links).toContainEqual({ href: '/console/incidents', text: 'All incidents' });
});

test('the list has filters, and each incident leads to where it is decided and names its section of the runbook', async () => {
  await using relay = await startTestService();
  const { database } = relay;
  await insertIncident(database, {
    condition: 'returned',
    severity: 'critical',
    beganAgo: '2 hours',
    endedAgo: '1 hour',
  });
  await insertIncident(database, {
    condition: 'source-silent',
    subject: 'team-a',
    severity: 'critical',
    beganAgo: '1 hour',
  });
  await insertIncident(database, {
    condition: 'stuck-jobs',
    severity: 'warning',
    beganAgo: '3 hours',
    endedAgo: '2 hours',
  });
  const visit = await visitConsole(relay, { role: 'viewer' });
  const { links, pres } = await visit.get('/console/incidents');
  expect(links).toContainEqual({ href: '/console/outbox?state=returned', text: 'returned' });
  expect(links).toContainEqual({ href: '/console/source?name=team-a', text: 'source-silent' });
  expect(links).toContainEqual({ href: '/console/jobs?state=stuck', text: 'stuck-jobs' });
  expect(links).toContainEqual({
    href: '/console/docs/runbook#about-source-silent',
    text: 'runbook: source-silent',
  });
  expect(pres[0]).toBe('tallyhook alerts list --limit 25');
  for (const [query, wanted] of [
    ['state=open', ['source-silent']],
    ['severity=warning', ['stuck-jobs']],
    ['condition=returned', ['returned']],
    ['from=90m', ['source-silent', 'returned']],
    ['source=team-a', ['source-silent']],
  ] as const) {
    const page = await visit.get(`/console/incidents?${query}`);
    const names = page.links
      .map(({ text: word }) => word)
      .filter((word) => /^(?:returned|source-silent|stuck-jobs)$/.test(word));
    expect({ query, names }).toEqual({ query, names: wanted });
  }
  expect((await visit.get('/console/incidents?state=ajar')).status).toBe(400);
});

test('who may see some sources only is shown what goes on with these, and no conditions of all', async () => {
  await using relay = await startTestService();
  const { database } = relay;
  await insertIncident(database, {
    condition: 'source-silent',
    subject: 'team-a',
    severity: 'critical',
    summary: 'team-a is silent.',
    beganAgo: '1 hour',
  });
  await insertIncident(database, {
    condition: 'log-dropped',
    severity: 'warning',
    summary: 'Lines were dropped.',
    beganAgo: '1 hour',
  });
  const visit = await visitConsole(relay, { role: 'viewer', sources: ['team-a'] });
  const { text, status } = await visit.get('/console');
  expect(status).toBe(200);
  expect(text).toContain('team-a is silent.');
  expect(text).not.toContain('Lines were dropped.');
});
