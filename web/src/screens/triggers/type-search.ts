/** Trigger types with their triggers, and how many rules use these. No markup, no state. */
import type { TriggerRecord, TriggerTypeRecord } from '../../api/records.ts'

export interface TypeWithTriggers {
  type: TriggerTypeRecord
  triggers: { trigger: TriggerRecord; rules: number }[]
}

/** @param ruleTriggers reference of the trigger of each rule */
export function joined(
  types: readonly TriggerTypeRecord[],
  triggers: readonly TriggerRecord[],
  ruleTriggers: readonly string[],
): TypeWithTriggers[] {
  const uses = new Map<string, number>()
  for (const ref of ruleTriggers) uses.set(ref, (uses.get(ref) ?? 0) + 1)
  const byType = new Map<string, TypeWithTriggers['triggers']>()
  for (const trigger of triggers) {
    const known = byType.get(trigger.type) ?? []
    byType.set(trigger.type, known)
    known.push({ trigger, rules: uses.get(trigger.ref) ?? 0 })
  }
  return types.map((type) => ({ type, triggers: byType.get(type.ref) ?? [] }))
}

/** Those that have every word somewhere, by pack. */
export function byPack(all: readonly TypeWithTriggers[], search: string): Map<string, TypeWithTriggers[]> {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  const packs = new Map<string, TypeWithTriggers[]>()
  for (const one of all) {
    const text = `${one.type.ref} ${one.type.description.slice(0, 2000)}`.toLowerCase()
    if (!words.every((word) => text.includes(word))) continue
    packs.set(one.type.pack, [...(packs.get(one.type.pack) ?? []), one])
  }
  return packs
}
