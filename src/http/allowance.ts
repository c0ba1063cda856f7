/** Memory that requests may use: a limit for all callers together and one for each caller. */
import { queueFull } from '../core/errors.ts'

export interface Allowance {
  /** @param key the caller: an address */
  begin(key: string): Share
}

/** The memory that one request uses. */
export interface Share {
  /** @throws QUEUE_FULL */
  add(bytes: number): void
  /** Releases all of it. */
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
