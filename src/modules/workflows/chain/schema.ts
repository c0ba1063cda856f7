/** The shape of the definition of an action chain (contract 08, 8.2). */
import { objectOf, entriesOf } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import type { InspectionEntry } from '../types.ts'
import { inspectWith, type Schema } from '../definition/schema.ts'

const text: Schema = { type: 'string' }
const object: Schema = { type: 'object' }
const list: Schema = { type: 'array' }

const notifySection: Schema = {
  type: 'object',
  properties: { message: text, data: object, routes: list, channels: list },
  additionalProperties: false,
}

const node: Schema = {
  type: 'object',
  required: ['name', 'ref'],
  properties: {
    name: text,
    ref: text,
    params: object,
    parameters: object,
    'on-success': text,
    'on-failure': text,
    publish: object,
    notify: {
      type: 'object',
      properties: { 'on-complete': notifySection, 'on-success': notifySection, 'on-failure': notifySection },
      additionalProperties: false,
    },
  },
  additionalProperties: false,
}

const chain: Schema = {
  type: 'object',
  required: ['chain'],
  properties: { chain: { type: 'array', items: node }, default: text, vars: object },
  additionalProperties: false,
}

export const NODE_SCHEMA_PATH = 'properties.chain.items'

/** A key without a value counts as absent. */
export function withoutEmptyKeys(document: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const filled = (value: unknown): unknown =>
    isObject(value) ? objectOf(entriesOf(value).filter(([, inner]) => inner !== null)) : value
  return objectOf(
    entriesOf(document)
      .filter(([, value]) => value !== null)
      .map(([key, value]) => [key, key === 'chain' && Array.isArray(value) ? value.map(filled) : value]),
  )
}

/** What of the document does not have the shape. */
export function inspectChainShape(document: unknown): Generator<InspectionEntry, void> {
  return inspectWith(chain, document)
}

/**
 * A key that nobody reads, in a node other than the first. StackStorm checks the keys of the first node only, so chains of
 * packs have such keys, and run.
 */
export function isHarmless({ spec_path, schema_path }: InspectionEntry): boolean {
  return /^chain\[[1-9]/.test(spec_path ?? '') && schema_path?.endsWith('.additionalProperties') === true
}
