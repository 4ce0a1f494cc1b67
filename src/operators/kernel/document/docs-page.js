// Lets a reader try each operation of the documentation with a token. The token stays in its field: it is not stored, is in no
// address, and is gone with the page. Answers are shown as text alone.

const SHOWN_BYTES = 256 * 1024;
const SHOWN_HEADERS = [
  'Content-Type',
  'Content-Length',
  'Content-Disposition',
  'Allow',
  'Retry-After',
  'Idempotency-Replayed',
  'WWW-Authenticate',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
];
/** They could hide text or change its direction. */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/gu;

/** @returns an element with these properties and children. */
function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

const token = make('input', { id: 'token', type: 'password', autocomplete: 'off', spellcheck: false });
const tokenBar = make(
  'section',
  { className: 'token', ariaLabel: 'For all forms below' },
  make('label', { htmlFor: token.id }, 'Token'),
  token,
  make('span', {}, 'To try operations. It stays in this field until you leave the page.'),
);

const api = await (await fetch('openapi.json')).json();

function follow(value) {
  if (value?.$ref === undefined) return value;
  return value.$ref
    .split('/')
    .slice(1)
    .reduce((found, name) => found[name], api);
}

/** A body to begin with: the fields that have to be given. */
function sampleOf(schema) {
  const found = follow(schema) ?? {};
  if (found.default !== undefined) return found.default;
  if (found.const !== undefined) return found.const;
  if (found.enum !== undefined) return found.enum[0];
  if (found.anyOf ?? found.oneOf) return sampleOf((found.anyOf ?? found.oneOf)[0]);
  if (found.type === 'object') {
    const required = found.required ?? [];
    return Object.fromEntries(required.map((name) => [name, sampleOf(found.properties[name])]));
  }
  return (
    { array: [], integer: found.minimum ?? 0, number: 0, boolean: false, string: '' }[found.type] ?? null
  );
}

/** 128 random bits. `crypto.randomUUID` is missing where a page came by plain HTTP from another machine. */
const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  );

function controlOf({ name, in: place, schema }) {
  const { enum: choices } = follow(schema) ?? {};
  const values = choices && ['', ...choices];
  const control = values
    ? make('select', {}, ...values.map((value) => make('option', { value }, value)))
    : make('input', { autocomplete: 'off', spellcheck: false });
  return Object.assign(control, { name: `${place} ${name}`, value: place === 'header' ? newKey() : '' });
}

/** The form of one operation, made when it is opened. */
function makeForm(section, operation) {
  const { method, path } = section.dataset;
  const grid = make('div', { className: 'fields' });
  const add = (text, note, control) => {
    control.id = `${section.id} ${text}`.replaceAll(' ', '-');
    grid.append(make('label', { htmlFor: control.id }, text, make('small', {}, note)), control);
  };
  const parameters = (operation.parameters ?? []).map(follow);
  for (const parameter of parameters) {
    add(parameter.name, parameter.required ? `${parameter.in}, needed` : parameter.in, controlOf(parameter));
  }
  const media = follow(operation.requestBody)?.content['application/json'];
  if (media !== undefined) {
    const sample = JSON.stringify(sampleOf(media.schema), undefined, 2);
    add('body', 'JSON', make('textarea', { name: 'body', rows: 8, spellcheck: false, value: sample }));
  }
  const form = make('form', { autocomplete: 'off' });
  if (method !== 'get') form.append(make('p', { className: 'warning' }, WARNING));
  form.append(grid, ...makeAnswer(form, method, (signal) => request(path, method, parameters, form, signal)));
  return form;
}

/** The buttons of a form, and the place of the answer. `ask` sends the request. */
function makeAnswer(form, method, ask) {
  const go = make('button', { className: 'go' }, method === 'get' ? 'Try' : 'Send: this acts');
  const stop = make('button', { type: 'button', disabled: true }, 'Stop');
  const status = make('p', { className: 'status', role: 'status' });
  const headers = make('dl', { className: 'headers' });
  const body = make('pre', {
    className: 'body',
    tabIndex: 0,
    role: 'region',
    ariaLabel: 'Body of the answer',
  });
  let stopping = new AbortController();
  stop.addEventListener('click', () => stopping.abort());
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    stopping = new AbortController();
    [go.disabled, stop.disabled] = [true, false];
    [status.textContent, body.textContent] = ['Waiting for the answer …', ''];
    headers.replaceChildren();
    try {
      const response = await ask(stopping.signal);
      status.textContent = `${response.status} ${response.statusText}`;
      headers.append(...headerLines(response));
      await showBody(response, body, stopping);
    } catch (error) {
      if (stopping.signal.aborted) status.append(' (stopped)');
      else status.textContent = `There was no whole answer: ${error.message}`;
    } finally {
      [go.disabled, stop.disabled] = [false, true];
    }
  });
  return [make('div', { className: 'buttons' }, go, stop), status, headers, body];
}

const WARNING =
  'This is no test: it acts on the running service, in the name of the token. With the same Idempotency-Key it acts once. ' +
  'For another action, change the key.';

const valueOf = (form, { name, in: place }) => form.elements[`${place} ${name}`].value;

/** Relative to the page, so that it works behind a proxy that adds a path. */
function addressOf(path, parameters, form) {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) =>
    encodeURIComponent(valueOf(form, { name, in: 'path' })),
  );
  const query = new URLSearchParams();
  for (const parameter of parameters.filter(({ in: place }) => place === 'query')) {
    const value = valueOf(form, parameter);
    if (value !== '') query.set(parameter.name, value);
  }
  return `.${filled}${query.size > 0 ? `?${query}` : ''}`;
}

function request(path, method, parameters, form, signal) {
  const headers = new Headers({ Authorization: `Bearer ${token.value.trim()}` });
  for (const parameter of parameters.filter(({ in: place }) => place === 'header')) {
    const value = valueOf(form, parameter);
    if (value !== '') headers.set(parameter.name, value);
  }
  const body = form.elements.body?.value;
  if (body !== undefined) headers.set('Content-Type', 'application/json');
  const options = { cache: 'no-store', credentials: 'omit', redirect: 'error', signal };
  return fetch(addressOf(path, parameters, form), {
    method: method.toUpperCase(),
    headers,
    body,
    ...options,
  });
}

const headerLines = ({ headers }) =>
  SHOWN_HEADERS.filter((name) => headers.has(name)).map((name) =>
    make('div', {}, make('dt', {}, `${name}: `), make('dd', {}, headers.get(name))),
  );

/** As it comes. Beyond SHOWN_BYTES the request is ended. */
async function showBody(response, place, stopping) {
  const decoder = new TextDecoder();
  const isJson = response.headers.get('Content-Type')?.startsWith('application/json');
  let text = '';
  let bytes = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.length;
    const part = decoder.decode(value, { stream: true });
    text += part;
    place.append(seen(part));
    if (bytes <= SHOWN_BYTES) continue;
    place.append(`\n… only the first ${bytes} bytes are shown`);
    return stopping.abort();
  }
  if (isJson) place.textContent = seen(indented(text));
}

const seen = (text) => text.replaceAll('\r\n', '\n').replaceAll(UNSEEN, '\u{fffd}');

/** JSON on several lines, each value as it came: parsing could change numbers. */
function indented(json) {
  let depth = 0;
  const line = () => `\n${'  '.repeat(depth)}`;
  return json.replaceAll(/"(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[{}[\],:]|\s+/g, (part) => {
    if (part === '{' || part === '[') return ((depth += 1), part + line());
    if (part === '}' || part === ']') return ((depth -= 1), line() + part);
    if (part === ',') return part + line();
    if (part === ':') return ': ';
    return part.trim() === '' ? '' : part;
  });
}

document.querySelector('header').after(tokenBar);
for (const section of document.querySelectorAll('section[data-path]')) {
  const { method, path } = section.dataset;
  const details = make('details', { className: 'try' }, make('summary', {}, 'Try it'));
  const open = () => details.append(makeForm(section, api.paths[path][method]));
  details.addEventListener('toggle', open, { once: true });
  section.lastElementChild.before(details); // the table of answers
}
