/** `action.concurrency`: limits concurrent executions of an action. */
import type { ParameterSchema } from '../../lib/schema/index.ts'
import type { PolicyType } from './policy-type.ts'
import type { Policy } from './types.ts'
import type { Limit } from '../executions/ports.ts'

export const concurrencyParameters: Record<string, ParameterSchema> = {
  threshold: {
    type: 'integer',
    required: true,
    description: 'Executions that can run at once. 0 runs none.',
  },
  action: {
    type: 'string',
    enum: ['delay', 'cancel'],
    default: 'delay',
    description: 'What happens to an execution above the threshold: it waits until another ends, or svc cancels it.',
  },
}

/** @param key executions with equal keys count together */
export function limitOf({ ref, parameters }: Policy, key: string): Limit {
  return {
    key,
    threshold: Number(parameters['threshold']),
    beyond: parameters['action'] === 'cancel' ? 'cancel' : 'delay',
    policy: ref,
  }
}

export const concurrency: PolicyType = {
  record: {
    id: '000000000000000000000001',
    uid: 'policy_type:action:concurrency',
    ref: 'action.concurrency',
    name: 'concurrency',
    resource_type: 'action',
    description: 'Limits how many executions of an action run at once.',
    enabled: true,
    module: 'concurrency',
    parameters: concurrencyParameters,
  },
  apply(policy) {
    const limit = limitOf(policy, policy.id)
    return { limitOf: () => limit }
  },
}
