/** `action.retry`: what has failed, or has taken too long, is run again. */
import type { PolicyType } from './policy-type.ts'

const statusOf: Readonly<Record<string, string>> = { failure: 'failed', timeout: 'timeout' }

export const retry: PolicyType = {
  record: {
    id: '000000000000000000000003',
    uid: 'policy_type:action:retry',
    ref: 'action.retry',
    name: 'retry',
    resource_type: 'action',
    description: 'Runs an action again after an execution failed or timed out.',
    enabled: true,
    module: 'retry',
    parameters: {
      retry_on: {
        type: 'string',
        enum: Object.keys(statusOf),
        required: true,
        description: 'Outcome that triggers a retry.',
      },
      max_retry_count: {
        type: 'integer',
        minimum: 1,
        maximum: 5,
        default: 2,
        required: true,
        description: 'Maximum number of retries.',
      },
      delay: {
        type: 'number',
        minimum: 0,
        maximum: 120,
        description: 'Seconds between the end and the retry. Default: 0.',
      },
    },
  },
  apply({ parameters }) {
    const status = statusOf[String(parameters['retry_on'])]
    const maxCount = Number(parameters['max_retry_count'])
    const delaySeconds = Number(parameters['delay'] ?? 0)
    return {
      retryOf: (ended, retryCount) => (ended.status === status && retryCount < maxCount ? { delaySeconds } : undefined),
    }
  },
}
