/**
 * Slows down password guessing. After several failures of a user or from an address, further attempts must wait. The
 * wait doubles each time, up to a maximum.
 *
 * Existing libraries are middleware that counts requests per path. Here an attempt counts as failed before its outcome
 * is known, so that concurrent attempts cannot bypass the limit. A success takes the count back.
 */
import { hash } from 'node:crypto'
import { isIP } from 'node:net'
import { tooManyFailures } from '../../core/errors.ts'
import { Lru } from '../../lib/cache/index.ts'

/**
 * Entries per count: users, addresses, and users at one address. An attacker who tries more names makes svc forget the
 * failures of some users, but not those of the attacker's address.
 */
const MAX_KEYS = 10_000

export interface ThrottleSettings {
  /** Failures before the next attempt must wait. 0 disables the limit. */
  failuresPerUser: number
  failuresPerAddress: number
  /** Seconds after which a count is halved. */
  windowSeconds: number
  maxWaitSeconds: number
}

/** Source of an attempt, passed to `onWait`. */
export interface Trier {
  user?: string | undefined
  address: string
}

/** A wait that refused a login. */
export interface ThrottleWait {
  of: 'user' | 'address'
  failures: number
  /** Seconds until the wait ends. */
  seconds: number
}

export interface Throttle<T extends Trier = Trier> {
  /** Refuses early without counting. @throws TOO_MANY_FAILURES */
  admit(by: T): void
  /**
   * Runs a check of a credential that can be guessed.
   *
   * @param check false counts as a failure; an exception does not count
   * @throws TOO_MANY_FAILURES without a check; errors of the check
   */
  attempt(by: T, check: () => Promise<boolean>): Promise<boolean>
  /**
   * Counts a refused credential for its address.
   *
   * @param credential counts once even if it is sent again: a program with an old key is not guessing
   * @throws TOO_MANY_FAILURES
   */
  refused(by: T, credential?: string): void
}

export interface ThrottleOptions<T extends Trier> extends ThrottleSettings {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Called once per wait, for the first refused attempt. */
  readonly onWait: (by: T, wait: ThrottleWait) => void
}

export function createThrottle<T extends Trier>(options: ThrottleOptions<T>): Throttle<T> {
  const { failuresPerUser, failuresPerAddress, now, onWait } = options
  const addresses = new Counts(failuresPerAddress, options)
  const users = new Counts(failuresPerUser, options)
  /** Separate from `users`, so that an attacker elsewhere cannot lock out users at their usual address. */
  const usersAtHome = new Counts(failuresPerUser, options)
  const homes = new Lru<string, true>(MAX_KEYS)
  const refusedBefore = new Lru<string, true>(MAX_KEYS)

  /** The counts of an attempt. */
  function countsOf({ user, address }: Trier): [ThrottleWait['of'], Counts, string][] {
    const network = networkOf(address)
    const counts: ReturnType<typeof countsOf> = []
    if (user !== undefined && failuresPerUser > 0) {
      const name = nameOf(user)
      const home = homeOf(network, name)
      counts.push(homes.get(home) === true ? ['user', usersAtHome, home] : ['user', users, name])
    }
    if (failuresPerAddress > 0) counts.push(['address', addresses, network])
    return counts
  }

  function requireNoWait(by: T, counts: ReturnType<typeof countsOf>): void {
    for (const [of, count, key] of counts) {
      const { milliseconds, failures, isNew } = count.waitOf(key, now())
      if (milliseconds <= 0) continue
      const seconds = Math.ceil(milliseconds / 1000)
      if (isNew) onWait(by, { of, failures, seconds })
      throw tooManyFailures(seconds)
    }
  }

  /** @returns a function that settles the attempt */
  function begin(by: T): (outcome: 'failed' | 'not failed') => void {
    const counts = countsOf(by)
    requireNoWait(by, counts)
    const settles = counts.map(([, count, key]) => count.add(key, now()))
    return (outcome) => settles.forEach((settle) => settle(outcome, now()))
  }

  return {
    admit: (by) => requireNoWait(by, countsOf(by)),
    async attempt(by, check) {
      const settle = begin(by)
      let isRight = false
      let isDecided = false
      try {
        isRight = await check()
        isDecided = true
      } finally {
        settle(isDecided && !isRight ? 'failed' : 'not failed')
      }
      if (isRight && by.user !== undefined && failuresPerUser > 0) {
        const home = homeOf(networkOf(by.address), nameOf(by.user))
        homes.set(home, true)
        usersAtHome.forget(home)
      }
      return isRight
    },
    refused({ ...by }, credential) {
      const digest = credential === undefined ? undefined : hash('sha256', credential, 'base64')
      if (digest !== undefined && refusedBefore.get(digest) === true) return
      delete by.user
      begin(by)('failed')
      if (digest !== undefined) refusedBefore.set(digest, true)
    },
  }
}

interface Count {
  failures: number
  /** Time of the last halving. */
  since: number
  /** 0: none. */
  waitsUntil: number
  /** Whether the wait has not refused an attempt yet. */
  isNew: boolean
}

class Counts {
  readonly #counts = new Lru<string, Count>(MAX_KEYS)
  readonly #limit: number
  readonly #windowMs: number
  readonly #maxWaitMs: number

  constructor(limit: number, { windowSeconds, maxWaitSeconds }: ThrottleSettings) {
    this.#limit = limit
    this.#windowMs = windowSeconds * 1000
    this.#maxWaitMs = maxWaitSeconds * 1000
  }

  /** @returns the remaining wait; 0 or less: none */
  waitOf(key: string, now: number): { milliseconds: number; failures: number; isNew: boolean } {
    const count = this.#counts.get(key)
    if (count === undefined || count.waitsUntil <= now) return { milliseconds: 0, failures: 0, isNew: false }
    const { isNew } = count
    count.isNew = false
    return { milliseconds: count.waitsUntil - now, failures: count.failures, isNew }
  }

  /** Counts a failure. @returns a function that settles it */
  add(key: string, now: number): (outcome: 'failed' | 'not failed', now: number) => void {
    const count = this.#counts.get(key) ?? { failures: 0, since: now, waitsUntil: 0, isNew: false }
    const windows = Math.floor((now - count.since) / this.#windowMs)
    if (windows > 0) {
      count.failures = Math.floor(count.failures / 2 ** windows)
      count.since = count.failures === 0 ? now : count.since + windows * this.#windowMs
    }
    count.failures += 1
    this.#counts.set(key, count)
    const before = count.waitsUntil
    const waitMs =
      count.failures < this.#limit ? 0 : Math.min(this.#maxWaitMs, 1000 * 2 ** (count.failures - this.#limit))
    if (waitMs > 0) {
      count.waitsUntil = now + waitMs
      count.isNew = true
    }
    const mine = count.waitsUntil
    return (outcome, then) => {
      if (outcome === 'failed') {
        if (waitMs > 0 && count.waitsUntil === mine) count.waitsUntil = then + waitMs
        return
      }
      count.failures = Math.max(0, count.failures - 1)
      if (count.waitsUntil === mine) count.waitsUntil = before
    }
  }

  forget(key: string): void {
    const count = this.#counts.get(key)
    if (count === undefined) return
    count.failures = 0
    count.waitsUntil = 0
  }
}

/** Normalizes spellings that some directories accept for one user. */
function nameOf(user: string): string {
  return user.normalize('NFKC').toLowerCase().trim().replace(/\s+/g, ' ')
}

function homeOf(network: string, name: string): string {
  return `${network}\0${name}`
}

/** The address. For IPv6 its first 64 bits, because a client can choose the rest. */
export function networkOf(address: string): string {
  const [plain = ''] = address.split('%')
  if (isIP(plain) !== 6) return address
  const canonical = new URL(`http://[${plain}]`).hostname.slice(1, -1)
  const [head = '', tail] = canonical.split('::')
  const groups = head === '' ? [] : head.split(':')
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === '' ? 0 : tail.split(':').length)
  groups.push(...Array.from({ length: missing }, () => '0'))
  if (tail !== undefined && tail !== '') groups.push(...tail.split(':'))
  const network = groups.slice(0, 4)
  // The loopback address and IPv4-mapped addresses do not belong to a network of one client.
  return network.every((group) => group === '0') ? canonical : `${network.join(':')}::/64`
}
