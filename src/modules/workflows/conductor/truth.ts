import { JsonNumber } from '../../../lib/json/index.ts'

/** Whether a condition with this value holds, as in Python: null, false, 0, and what is empty do not. */
export function isTruthy(value: unknown): boolean {
  if (value instanceof JsonNumber) return Number(value) !== 0
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0
  return Boolean(value)
}
