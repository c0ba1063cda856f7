/** Checks policy definitions (contract 02, 2.11) and fills in defaults. Pure functions. */
import { compileParameters, type ParameterSchema, type SchemaProblem } from '../../lib/schema/index.ts'
import { findPolicyType, policyTypes } from './policy-types.ts'
import type { PolicyDefinition, PolicyRecord } from './types.ts'
import { shown } from '../../lib/text/index.ts'

/** What an author says, in full. */
export type FilledPolicy = Omit<PolicyRecord, 'id' | 'uid' | 'ref'>

/**
 * What was left out, filled in.
 *
 * @param given has passed one of the schemas
 * @param pack of a policy that does not say
 */
export function fillPolicyDefinition(given: PolicyDefinition, pack: string): FilledPolicy {
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
export function policyProblemOf(
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
