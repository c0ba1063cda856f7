/** What may be a policy (contract 02, 2.11), and what is filled in. Pure functions. */
import { defaultPack, descriptionSchema, MAX_NAME_CHARS, nameSchema, packSchema } from '../../core/pack-content.ts'
import { compileParameters, type JsonSchema, type ParameterSchema, type SchemaProblem } from '../../lib/schema/index.ts'
import { findPolicyType, policyTypes } from './policy-types.ts'
import type { PolicyDefinition, PolicyRecord } from './types.ts'
import { shown } from '../../lib/text/index.ts'

const properties: Record<string, JsonSchema> = {
  name: nameSchema,
  pack: {
    ...packSchema,
    type: ['string', 'null'],
    description: `Default: \`${defaultPack}\`; of a policy that is changed: its own. There need be no such pack.`,
  },
  description: descriptionSchema,
  enabled: { type: ['boolean', 'null'], description: 'Default: true.' },
  resource_ref: {
    type: 'string',
    pattern: '^\\S+\\.\\S+$',
    maxLength: 2 * MAX_NAME_CHARS,
    description: 'Reference of the action that it is about. It need not exist yet.',
  },
  policy_type: { type: 'string', description: 'Reference of its type, such as `action.concurrency`.' },
  parameters: { type: ['object', 'null'], description: 'As the type says.' },
}

/** Of a pack file. */
export const policyFileSchema: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'resource_ref', 'policy_type'],
  properties,
}

const setByServer: JsonSchema = { description: 'Set by the server; not read.' }

/** Body of POST and PUT: what replies show can be sent back. */
export const policyRequestSchema: JsonSchema = {
  title: 'PolicyRequest',
  ...policyFileSchema,
  properties: {
    ...properties,
    id: setByServer,
    uid: setByServer,
    ref: setByServer,
    metadata_file: setByServer,
  },
}

/** What an author says, in full. */
export type FilledPolicy = Omit<PolicyRecord, 'id' | 'uid' | 'ref'>

/**
 * What was left out, filled in.
 *
 * @param given has passed one of the schemas
 * @param pack of a policy that does not say
 */
export function fillDefinition(given: PolicyDefinition, pack: string): FilledPolicy {
  const parameters = { ...given.parameters }
  for (const [name, schema] of Object.entries(findPolicyType(given.policy_type)?.record.parameters ?? {})) {
    if (schema.default !== undefined && (parameters[name] ?? null) === null) parameters[name] = schema.default
  }
  // Null is the same as nothing.
  const said = Object.entries(parameters).filter(([, value]) => value !== null)
  return {
    name: given.name,
    pack: given.pack ?? pack,
    description: given.description ?? '',
    enabled: given.enabled ?? true,
    resource_ref: given.resource_ref,
    policy_type: given.policy_type,
    parameters: Object.fromEntries(said),
  }
}

/** @param ofAction the parameters of the action it is about; undefined: there is no such action yet */
export function problemOf(
  { policy_type: ref, parameters }: FilledPolicy,
  ofAction: Readonly<Record<string, ParameterSchema>> | undefined,
): SchemaProblem | undefined {
  const type = findPolicyType(ref)
  if (type === undefined) {
    const known = policyTypes.map(({ record }) => record.ref).join(', ')
    return { path: ['policy_type'], message: `Policy type "${shown(ref)}" does not exist; there are ${known}.` }
  }
  const problem =
    compileParameters(type.record.parameters).find(parameters) ??
    (ofAction === undefined ? undefined : type.problemOf?.(parameters, ofAction))
  return (
    problem && {
      path: ['parameters', ...problem.path],
      message: `Parameters of policy type "${ref}": ${problem.message}`,
    }
  )
}
