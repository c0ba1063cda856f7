/** Secret action parameters of rules: masked in responses, kept if a client sends the mask back (contract 00, 0.15). */
import { isObject, MASK } from '../../lib/schema/index.ts'

/**
 * Replaces each mask in the given value with the stored secret.
 *
 * @param masked the stored value as responses show it
 * @returns `kept`: whether any mask was replaced
 */
export function keepSecrets(given: unknown, stored: unknown, masked: unknown): { value: unknown; kept: boolean } {
  let kept = false
  const walk = (own: unknown, before: unknown, shown: unknown): unknown => {
    if (own === MASK && shown === MASK && before !== MASK && before !== undefined) {
      kept = true
      return before
    }
    if (Array.isArray(own)) {
      if (!Array.isArray(before) || !Array.isArray(shown)) return own
      return own.map((item, i) => walk(item, before[i], shown[i]))
    }
    if (!isObject(own) || !isObject(before) || !isObject(shown)) return own
    return Object.fromEntries(
      Object.entries(own).map(([name, item]) => [
        name,
        Object.hasOwn(before, name) && Object.hasOwn(shown, name) ? walk(item, before[name], shown[name]) : item,
      ]),
    )
  }
  const value = walk(given, stored, masked)
  return { value, kept }
}
