/** The triggers that there are, by reference: those with parameters have names that say nothing. */
import { list } from '../../api/client.ts'
import { useLoaded, type Loaded } from '../../api/load.ts'
import type { TriggerRecord } from '../../api/records.ts'

export function useTriggers(): Loaded<ReadonlyMap<string, TriggerRecord>> {
  return useLoaded(async (signal): Promise<ReadonlyMap<string, TriggerRecord>> => {
    const { items } = await list<TriggerRecord>('triggers', {}, signal)
    return new Map(items.map((trigger) => [trigger.ref, trigger]))
  }, [])
}
