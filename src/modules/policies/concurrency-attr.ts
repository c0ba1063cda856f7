/** `action.concurrency.attr`: limits concurrent executions of an action with equal values of some parameters. */
import { createHash } from 'node:crypto'
import { canonical } from '../../lib/schema/index.ts'
import type { Execution } from '../executions/types.ts'
import { concurrencyParameters, limitOf } from './concurrency.ts'
import type { PolicyType } from './policy-type.ts'
import { shown } from '../../lib/text/index.ts'

const MAX_ATTRIBUTES = 100

export const concurrencyAttr: PolicyType = {
  record: {
    id: '000000000000000000000002',
    uid: 'policy_type:action:concurrency.attr',
    ref: 'action.concurrency.attr',
    name: 'concurrency.attr',
    resource_type: 'action',
    description: 'Limits how many executions of an action with the same values of some parameters run at once.',
    enabled: true,
    module: 'concurrency-attr',
    parameters: {
      ...concurrencyParameters,
      attributes: {
        type: 'array',
        items: { type: 'string' },
        maxItems: MAX_ATTRIBUTES,
        uniqueItems: true,
        description:
          'Names of parameters of the action. Executions with equal values of all of them count together; without names, all executions of the action do.',
      },
    },
  },
  problemOf({ attributes }, ofAction) {
    const index = namesOf(attributes).findIndex((name) => !Object.hasOwn(ofAction, name))
    if (index === -1) return undefined
    const name = shown(namesOf(attributes)[index])
    return {
      path: ['attributes', String(index)],
      message: `attributes[${index}]: the action has no parameter "${name}"; it has ${shown(Object.keys(ofAction).join(', ')) || 'none'}`,
    }
  },
  apply(policy) {
    const names = namesOf(policy.parameters['attributes'])
    return { limitOf: (execution, open) => limitOf(policy, `${policy.id}:${digestOf(execution, open(), names)}`) }
  },
}

function namesOf(attributes: unknown): string[] {
  return Array.isArray(attributes) ? attributes.filter((name) => typeof name === 'string') : []
}

/** A digest, because values may be long, or secret. */
function digestOf(execution: Execution, parameters: Record<string, unknown>, names: readonly string[]): string {
  const values = names.map((name) => valueOf(execution, parameters, name))
  return createHash('sha256').update(canonical(values)).digest('base64url')
}

/** Of an execution that was not given any: the default. Defaults with templates are among what it was given. */
function valueOf({ action, runner }: Execution, parameters: Record<string, unknown>, name: string): unknown {
  const given = Object.hasOwn(parameters, name) ? parameters[name] : undefined
  if (given !== undefined && given !== null) return given
  for (const schemas of [action.parameters, runner.runner_parameters]) {
    const schema = Object.hasOwn(schemas, name) ? schemas[name] : undefined
    if (schema !== undefined && Object.hasOwn(schema, 'default')) return schema.default ?? null
  }
  return null
}
