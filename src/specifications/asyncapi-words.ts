// The prose of the AsyncAPI document: what its bindings cannot say. It repeats no field that a form describes.

import { routingKey } from '../event/index.ts';
import type { Bus } from './asyncapi.ts';

export const ABOUT_COPIES = `The routing key is the name of the queue here, so read \`type\` and \`source\` of the event. They do not change.
A queue that is bound to some kinds only can get copies of other kinds: ignore these.`;

/** Of the whole document, as CommonMark. */
export function aboutEvents({ exchange, routingPrefix }: Bus): string {
  const key = (kind: string, source: string) => `\`${routingKey(routingPrefix, kind, source)}\``;
  return `Tallyhook receives the webhooks of the conversion service and publishes each event to RabbitMQ.

This document describes Tallyhook: its operations are \`send\`. A subscriber receives the same messages.

## Subscribing

The exchange \`${exchange}\` is a durable topic exchange; Tallyhook declares it. You declare a durable queue of your own and bind it:

| you want | bind |
|---|---|
| everything | \`${routingPrefix}.#\` |
| all completions | ${key('completed', '*')} |
| all events of one source | ${key('*', 'team-a')} |
| failures of one source | ${key('failed', 'team-a')} |

Acknowledge a message after your own work is done and saved, never before. Limit the unacknowledged messages (prefetch).
Events that no queue is bound for are kept. An operator can send them again when there is a queue.

## Failures

If your work on an event fails, try it again in your program, after a wait, and begin no later event of its job meanwhile. Never
requeue a message (\`basic.nack\` or \`basic.reject\` with \`requeue\`): RabbitMQ can deliver it after later events of its job, which
breaks the order. If what you depend on is away, go on trying. If the event itself is at fault, give up after a few attempts: then,
and for a message that is no event, use \`basic.reject\` without \`requeue\`, and the broker moves the message to the dead-letter
exchange. What is not acknowledged within the broker's \`consumer_timeout\` (30 minutes) closes the channel, and comes again.

For that, declare your queue, \`<queue>\`, as a durable quorum queue with these arguments:

| argument | value |
|---|---|
| \`x-queue-type\` | \`quorum\` |
| \`x-dead-letter-exchange\` | \`<queue>.dead\`, a durable fanout exchange |
| \`x-dead-letter-strategy\` | \`at-least-once\` |
| \`x-overflow\` | \`reject-publish\`, which \`at-least-once\` needs |
| \`x-delivery-limit\` | 20 |

Bind a durable quorum queue, also named \`<queue>.dead\`, to that exchange. \`x-delivery-limit\` is not for failures that your program
sees: it is for an event that ends your program, so that it does not come back for ever. Each lost connection counts as one
delivery, too. (The AMQP binding of AsyncAPI has no place for these arguments.)

## Copies

The first message of an event is its *first copy*. After a fault the same event can arrive again: with the same \`id\` and the same
bytes, even after newer events of its job. RabbitMQ also delivers again what was not acknowledged. So remember the \`id\` of each
event that took effect, in the same transaction as the effect, and do nothing if you know it.

Operators can have events published again (a *replay*). Each copy of a replay has the same body as before, and two headers that
first copies never have: \`replay\` and \`replayed_by\`. Deduplicating by \`id\` is enough. If you lost data and want it again, delete
the ids together with the data, or you drop the copies.

## Order

First copies of one job's events arrive in the order of their \`sequence\`. There is no order between jobs. All events of a job
have the same \`source\` and \`subject\`.

A queue keeps this order only with one consumer at a time that handles one message after the other. If several consumers share
a queue, declare it with \`x-single-active-consumer\`, or distribute the jobs by \`subject\`. (The binding has no place for this
argument either.)

## Versions

The number at the end of \`dataschema\` is the version of the form of \`data\`. A change that could break a subscriber raises it; the old
form is then published beside the new one. A new optional field does not raise it. So ignore attributes, fields and headers that you
do not know, and ignore events whose \`type\` or \`dataschema\` you do not know.

The values of unknown fields are passed on as they were signed. Numbers keep their exact value, whatever their size.
Integers of known fields fit into a double. Timestamps are RFC 3339 in UTC, with as many digits of a second as were sent.

## AMQP properties

\`x-amqp-properties\` of each message is a JSON Schema of its AMQP properties. \`content_type\`, \`type\` and \`delivery_mode\` are also in the
bindings; \`message_id\`, \`timestamp\` and \`app_id\` have no place there.`;
}
