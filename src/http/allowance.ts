/** Memory that callers may fill together, and each of them. */
import { queueFull } from '../core/errors.ts'

export interface Allowance {
  /** @param key who fills it: an address */
  begin(key: string): Share
}

/** What one request has taken. */
export interface Share {
  /** @throws QUEUE_FULL */
  add(bytes: number): void
  /** Gives all of it back. */
  end(): void
}

export function createAllowance(limits: {
  /** In the plural, for the message. */
  what: string
  totalBytes: number
  bytesPerKey: number
}): Allowance {
  const taken = new Map<string, number>()
  let total = 0
  return {
    begin(key) {
      let own = 0
      const change = (bytes: number): void => {
        own += bytes
        total += bytes
        const ofKey = (taken.get(key) ?? 0) + bytes
        if (ofKey === 0) taken.delete(key)
        else taken.set(key, ofKey)
      }
      return {
        add(bytes) {
          if (total + bytes > limits.totalBytes || (taken.get(key) ?? 0) + bytes > limits.bytesPerKey) {
            throw queueFull(limits.what, limits.bytesPerKey)
          }
          change(bytes)
        },
        end: () => change(-own),
      }
    },
  }
}
