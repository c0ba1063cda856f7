/** Names of StackStorm in records, as svc has them. Files of packs keep theirs. */
import { ourName } from '../core/compat/names.ts'
import { isObject } from '../lib/schema/index.ts'

/** `core.st2.webhook` is `core.svc.webhook` here. */
export const ownTriggerType = (ref: string): string => ourName('triggerType', ref) ?? ref

const template = /\{\{|\{%|<%/

/** A text that may be a template: the datastore has another name in templates. */
export function ownText(text: string): string {
  return template.test(text) ? text.replaceAll(/\bst2kv\b/g, 'svckv') : text
}

/** The same for all texts in a value. */
export function ownTexts(value: unknown): unknown {
  if (typeof value === 'string') return ownText(value)
  if (Array.isArray(value)) return value.map(ownTexts)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, ownTexts(inner)]))
}
