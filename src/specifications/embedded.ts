// A form as a part of a document.

import type { Form } from '../event/index.ts';

/** Tools would resolve the references in the document against a `$id`. */
const LEFT_OUT = ['$schema', '$id'];

/** The same rules, and its `$id` in words. */
export function embedded(form: Form): object {
  const kept = Object.entries(form).filter(([keyword]) => !LEFT_OUT.includes(keyword));
  return { description: `As the JSON Schema \`${form.$id}\`.`, ...Object.fromEntries(kept) };
}
