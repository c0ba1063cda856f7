/** The schemas of a trigger type, compiled at first use. */
import {
  isObject,
  MASK,
  compileDraft4,
  usableDraft4,
  type SchemaCheck,
  type SchemaProblem,
  type JsonSchema,
} from '../../../lib/schema/index.ts'
import { compileSecrets, type Replace, type ReplaceSecrets } from '../../../lib/secrets/index.ts'
import { findTemplates } from '../../../core/template-values.ts'
import { problemOfBuiltin } from '../builtin/types.ts'
import { takesNoParameters } from './type-definition.ts'
import type { TriggerTypeRecord } from '../types.ts'

interface Compiled {
  parameters?: SchemaCheck
  payload?: SchemaCheck
  /** Null: nothing is secret. */
  secrets?: ReplaceSecrets | null
}

// Keyed by the records themselves: a changed type is another record.
const compiledOf = new WeakMap<TriggerTypeRecord, Compiled>()

function compiled(type: TriggerTypeRecord): Compiled {
  let known = compiledOf.get(type)
  if (known === undefined) {
    known = {}
    compiledOf.set(type, known)
  }
  return known
}

const closed: JsonSchema = { type: 'object', additionalProperties: false }

/** First problem in the parameters of a trigger of this type. */
export function problemOfParameters(
  type: TriggerTypeRecord,
  parameters: Readonly<Record<string, unknown>>,
): SchemaProblem | undefined {
  const known = compiled(type)
  known.parameters ??= compileDraft4(takesNoParameters(type) ? closed : usableDraft4(type.parameters_schema))
  return known.parameters.find(parameters) ?? problemOfBuiltin(type.ref, parameters)
}

/** First problem in the payload of an instance of this type. */
export function problemOfPayload(type: TriggerTypeRecord, payload: unknown): string | undefined {
  const known = compiled(type)
  known.payload ??= compileDraft4(usableDraft4(type.payload_schema))
  return known.payload(payload)
}

/** A copy of the parameters with their secrets replaced, or the parameters themselves. */
export function replaceSecrets(
  type: TriggerTypeRecord,
  parameters: Record<string, unknown>,
  replace: Replace,
  counterpart?: unknown,
): Record<string, unknown> {
  const known = compiled(type)
  if (known.secrets === undefined) known.secrets = compileSecrets(usableDraft4(type.parameters_schema)) ?? null
  if (known.secrets === null) return parameters
  const replaced = known.secrets(parameters, replace, counterpart)
  return isObject(replaced) ? replaced : {}
}

/** Whether a value of the parameters is secret. */
export function hasSecrets(type: TriggerTypeRecord, parameters: Record<string, unknown>): boolean {
  let found = false
  replaceSecrets(type, parameters, (secret) => {
    found ||= secret !== null && secret !== undefined
    return secret
  })
  return found
}

/** Whether a secret of the parameters is a template. */
export function hasSecretTemplates(type: TriggerTypeRecord, parameters: Record<string, unknown>): boolean {
  let found = false
  replaceSecrets(type, parameters, (secret) => {
    found ||= findTemplates(secret) !== undefined
    return secret
  })
  return found
}

/** Whether a secret is a mask without a stored value. */
export function hasMask(type: TriggerTypeRecord, parameters: Record<string, unknown>): boolean {
  let found = false
  replaceSecrets(type, parameters, (secret) => {
    found ||= secret === MASK
    return secret
  })
  return found
}
