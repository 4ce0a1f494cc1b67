// A message in the form that its receiver takes. Pure.

import { hmacSha256 } from '../../base/signing/sha256.ts';
import type { Channel } from './channels-file.ts';
import {
  consoleLink,
  type Links,
  runbookLink,
  summaryOf,
  timesOf,
  titleOf,
  type Told,
  waitedOf,
} from './told.ts';

export type Content = { readonly body: Buffer; readonly headers: Readonly<Record<string, string>> };

const JSON_TYPE = { 'Content-Type': 'application/json' } as const;
/** Where the runbook is without an address of it: in the package and in the repository. */
const RUNBOOK_FILE = 'docs/runbook.md';

/**
 * What is sent. `json` is signed over the raw bytes as webhooks are, and has its id as the `Idempotency-Key`, too, as requests of the
 * operators' API have theirs.
 */
export function contentFor(channel: Channel, told: Told, links: Links): Content {
  if (channel.form !== 'json')
    return plain(channel.form === 'slack' ? { text: slackText(told, links) } : teamsMessage(told, links));
  const body = bytesOf(jsonMessage(told, links));
  const signature = `sha256=${hmacSha256(channel.key, body).toString('hex')}`;
  return {
    body,
    headers: { ...JSON_TYPE, 'Idempotency-Key': told.id, 'X-Service-Signature': signature },
  };
}

const bytesOf = (message: unknown) => Buffer.from(JSON.stringify(message), 'utf8');
const plain = (message: unknown): Content => ({ body: bytesOf(message), headers: JSON_TYPE });

/** docs/alert-message.schema.json describes it. A field is added at most: receivers rely on the others. */
export function jsonMessage(told: Told, links: Links) {
  const { id, incident, moment, condition, severity, subject, beganAt, endedAt, eventsWaited } = told;
  return {
    id,
    incident,
    moment,
    condition,
    severity,
    subject: subject === '' ? null : subject,
    summary: summaryOf(told),
    began_at: beganAt.toISOString(),
    ended_at: endedAt?.toISOString() ?? null,
    events_waited: eventsWaited,
    console: consoleLink(links) ?? null,
    runbook: runbookLink(told, links) ?? runbookFile(told),
  };
}

const runbookFile = ({ moment, condition }: Told) =>
  moment === 'test' ? RUNBOOK_FILE : `${RUNBOOK_FILE}#${condition}`;

/** Slack's own markup, in which these three characters are markup everywhere (docs.slack.dev/messaging/formatting-message-text). */
function slackText(told: Told, links: Links): string {
  const console = consoleLink(links);
  const runbook = runbookLink(told, links);
  const seen = [
    console && slackLink(console, 'Console'),
    runbook === undefined ? escaped(`Runbook: ${runbookFile(told)}`) : slackLink(runbook, 'Runbook'),
  ];
  return [
    `*${escaped(titleOf(told))}*`,
    escaped(summaryOf(told)),
    escaped(factsOf(told).join('; ')),
    seen.filter(Boolean).join(' · '),
  ].join('\n');
}

const factsOf = (told: Told) => [timesOf(told), waitedOf(told)].filter((fact) => fact !== undefined);

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const slackLink = (url: string, name: string) =>
  `<${escaped(new URL(url).href).replaceAll('|', '%7C')}|${name}>`;

/**
 * What a workflow of Power Automate with the trigger "When a Teams webhook request is received" takes: a message whose only attachment
 * is an Adaptive Card. A TextRun reads no Markdown, so the name of a source is shown as it is.
 */
function teamsMessage(told: Told, links: Links) {
  const console = consoleLink(links);
  const runbook = runbookLink(told, links);
  const lines = [summaryOf(told), ...factsOf(told), ...(runbook ? [] : [`Runbook: ${runbookFile(told)}`])];
  const actions = [
    ...(console ? [openUrl('Console', console)] : []),
    ...(runbook ? [openUrl('Runbook', runbook)] : []),
  ];
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.2', // the first with TextRun
          body: [
            richText({ text: titleOf(told), weight: 'bolder', size: 'medium', color: colorOf(told) }),
            ...lines.map((text) => richText({ text })),
          ],
          ...(actions.length > 0 && { actions }),
        },
      },
    ],
  };
}

const richText = (run: Readonly<Record<string, string>>) => ({
  type: 'RichTextBlock',
  inlines: [{ type: 'TextRun', ...run }],
});

const openUrl = (title: string, url: string) => ({ type: 'Action.OpenUrl', title, url: new URL(url).href });

function colorOf({ moment, severity }: Told): string {
  if (moment !== 'begin') return moment === 'end' ? 'good' : 'default';
  return severity === 'critical' ? 'attention' : 'warning';
}
