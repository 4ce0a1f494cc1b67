// The form that creates a conversion: of a sample clip of the sandbox's file server, or of any file that jobs may use.

import { type RequestHandler, type Response, Router } from 'express';
import { type Content, type Html, html, readForm, seeOther } from '../../web/index.ts';
import { ApiError } from '../api/errors.ts';
import { createJobCreation } from '../api/create-job.ts';
import { FORMAT_NAMES } from '../engine/formats.ts';
import { CLIPS } from '../files/clips.ts';
import { newId } from '../ids.ts';
import { jobAddress } from './job-table.ts';
import { show } from './layout.ts';
import { at } from './methods.ts';
import { faultList, form } from './shown.ts';
import { accountOf, type Site } from './site.ts';

type Values = Readonly<
  Record<'clip' | 'input_url' | 'input_format' | 'output_format' | 'output_url' | 'webhook_url', string>
>;

const OWN = 'own';
const DEFAULTS: Values = {
  clip: CLIPS[0].file,
  input_url: '',
  input_format: 'mp4',
  output_format: 'webm',
  output_url: '',
  webhook_url: '',
};

export function newJobPage(site: Site): Router {
  const router = Router({ caseSensitive: true, strict: true });
  at(router, '/jobs/new', { get: read(site), post: create(site) });
  return router;
}

function read(site: Site): RequestHandler<{ id: string }> {
  return (_request, response) => {
    const account = accountOf(response);
    const clip = site.filesUrl === undefined ? OWN : DEFAULTS.clip;
    const webhook_url = account.webhookUrl ?? site.receiverUrl ?? '';
    page(site, response, { values: { ...DEFAULTS, clip, webhook_url } });
  };
}

function create(site: Site): RequestHandler<{ id: string }> {
  const createJob = createJobCreation(site);
  return async (request, response) => {
    const given = await readForm(request);
    const values = Object.fromEntries(
      Object.keys(DEFAULTS).map((name) => [name, (given.get(name) ?? '').trim()]),
    ) as Values;
    try {
      const { result } = site.once.run(`job ${accountOf(response).id}`, given, () => {
        const job = createJob(orderOf(values, site), accountOf(response));
        return jobAddress(job.job_id);
      });
      seeOther(response, result);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { status, message, details } = error.answer;
      const faults = details?.map(
        (detail) => `${LABELS[detail.field] ?? detail.field} ${detail.message}`,
      ) ?? [message];
      page(site, response, { values, faults, status });
    }
  };
}

const LABELS: Readonly<Record<string, string>> = {
  input_url: 'The input’s address',
  input_format: 'The input’s format',
  output_url: 'The output’s address',
  output_format: 'The output’s format',
  webhook_url: 'The address for webhooks',
};

function orderOf(values: Values, { filesUrl }: Site): Record<string, unknown> {
  const { output_format, output_url, webhook_url } = values;
  const clip = CLIPS.find(({ file }) => file === values.clip);
  const isOwn = clip === undefined || filesUrl === undefined;
  const freeOutput = filesUrl === undefined ? '' : `${filesUrl}/${newId('converted')}.${output_format}`;
  return {
    job_type: 'video',
    input_url: isOwn ? values.input_url : `${filesUrl}/${clip.file}`,
    input_format: isOwn ? values.input_format : clip.format,
    output_url: output_url || freeOutput,
    output_format,
    webhook_url: webhook_url || null,
  };
}

type Shown = { readonly values: Values; readonly faults?: readonly string[]; readonly status?: number };

function page(site: Site, response: Response, { values, faults = [], status = 200 }: Shown): void {
  const content = html`${faultList(faults)}
${form(
  '/jobs/new',
  html`${inputFields(values, site)}
${select('Output format', 'output_format', values.output_format)}
<label>Output address ${outputHint(site)}
<input name="output_url" type="url" value="${values.output_url}"${site.filesUrl === undefined && html` required`}></label>
<label>Address for webhooks (empty: the account’s default address, if it is set)
<input name="webhook_url" type="url" value="${values.webhook_url}"></label>
<button class="main">Create the conversion</button>`,
)}`;
  show(site, response, { title: 'New conversion', section: '/jobs', content, status });
}

function inputFields(values: Values, { filesUrl }: Site): Content {
  const own = html`<label>Input address
<input name="input_url" type="url" value="${values.input_url}"${filesUrl === undefined && html` required`}></label>
${select('Input format', 'input_format', values.input_format)}`;
  if (filesUrl === undefined) return html`<input type="hidden" name="clip" value="${OWN}">${own}`;
  return html`<fieldset class="choices"><legend>Input</legend>
${CLIPS.map(({ file, about }) => choice(file, `${file}: ${about}`, values.clip))}
${choice(OWN, 'a file of your own', values.clip)}
</fieldset>
<fieldset class="form own"><legend class="unseen">A file of your own</legend>
${own}
</fieldset>`;
}

function choice(value: string, label: string, chosen: string): Html {
  return html`<label class="tick"><input type="radio" name="clip" value="${value}"${value === chosen && html` checked`}> ${label}</label>`;
}

function outputHint({ filesUrl }: Site): string {
  return filesUrl === undefined ? '' : '(empty: a new file of the sandbox’s file server)';
}

function select(label: string, name: string, chosen: string): Html {
  return html`<label>${label}
<select name="${name}">${FORMAT_NAMES.map((format) => html`<option${format === chosen && html` selected`}>${format}</option>`)}</select></label>`;
}
