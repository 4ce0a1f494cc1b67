// Parking an event: it stays in the outbox until somebody retries it.

import { EventDetail } from '../../../contract/events.ts';
import { Entry } from '../../../contract/outbox.ts';
import { html } from '../../../../web/index.ts';
import { get, type Page, post } from '../../page.ts';
import { sameAs } from '../../same-as.ts';
import { hiddenFields, keyField, keyIn } from '../../view/act.ts';
import { renderFacts } from '../../view/facts.ts';
import { eventHref } from '../../view/links.ts';
import { publicationState } from '../../view/states.ts';
import { utc } from '../../view/times.ts';
import { eventLink, OUTBOX } from './entries.ts';

const confirmPark: Page = get(
  '/outbox/park',
  ['parkEntry', 'showEvent'],
  async ({ query, calls, origin }) => {
    const id = query.get('id') ?? '';
    const found = await calls.call('showEvent', EventDetail, { params: { id } });
    return {
      title: 'Park this event?',
      body: html`${renderFacts([
        ['Event', html`<a class="id" href="${eventHref(found.id)}">${found.id}</a>`],
        ['On the bus', publicationState(found.publication)],
        ['Recorded', html`${utc(found.recorded_at)} UTC`],
      ])}
<p>It is not published until somebody retries it, and later events of its job wait behind it.</p>
<form method="post" action="${OUTBOX}/park">${hiddenFields({ id })}${keyField()}<p class="actions"><button class="main">Park it</button> <a href="${OUTBOX}">Back to the list</a></p></form>`,
      sameAs: parkLines(origin, id),
    };
  },
);

const park: Page = post('/outbox/park', ['parkEntry'], async ({ form, calls }) => {
  const id = form.get('id') ?? '';
  const found = await calls.call('parkEntry', Entry, { params: { id }, key: keyIn(form) });
  return {
    title: 'The event is parked',
    body: html`<p>${eventLink(found)} is not published until somebody retries it. <a href="${OUTBOX}">Back to the list</a></p>`,
  };
});

const parkLines = (origin: string, id: string) =>
  sameAs(origin, {
    command: ['outbox', 'park', id],
    path: `/outbox/${encodeURIComponent(id)}/park`,
    body: {},
  });

export const parkPages: readonly Page[] = [confirmPark, park];
