/** The object or list that a line of output is, as structured logs have them. */
import { readJson } from '../../json.ts'
export function findJson(text: string): { value: object } | undefined {
  const trimmed = text.trim()
  if (!/^[{[]/.test(trimmed)) return undefined
  try {
    const value: unknown = readJson(trimmed)
    return typeof value === 'object' && value !== null ? { value } : undefined
  } catch {
    return undefined
  }
}
