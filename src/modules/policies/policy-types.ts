/** Every type of policies. To add one: a file beside this one, and an entry here. */
import { concurrencyAttr } from './concurrency-attr.ts'
import { concurrency } from './concurrency.ts'
import type { PolicyType } from './policy-type.ts'
import { retry } from './retry.ts'

/** In the order of resource type and name. */
export const policyTypes: readonly PolicyType[] = [concurrency, concurrencyAttr, retry]

export function findPolicyType(refOrId: string): PolicyType | undefined {
  return policyTypes.find(({ record }) => record.ref === refOrId || record.id === refOrId)
}
