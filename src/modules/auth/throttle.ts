/**
 * Makes guessing slow: after some failures of one user, or from one address, the next tries have to wait, each time
 * twice as long, up to a bound.
 *
 * Libraries for this are middleware that counts requests of a path; here a try counts as failed before its outcome is
 * known, so that many at once are no way around the limit, and it is taken back when it succeeds.
 */
import { hash } from 'node:crypto'
import { isIP } from 'node:net'
import { tooManyFailures } from '../../core/errors.ts'
import { Lru } from '../../lib/cache/index.ts'

/**
 * Of users, of addresses, and of users at one address: whoever tries more names than this makes the server forget the
 * failures of some, but not those of the own address.
 */
const MAX_KEYS = 10_000

export interface ThrottleSettings {
  /** Tries that may fail until the next has to wait; 0: any number. */
  failuresPerUser: number
  failuresPerAddress: number
  /** Time after which a count is halved. */
  windowSeconds: number
  maxWaitSeconds: number
}

/** Who tries; it is handed on to `onWait` as it is. */
export interface Trier {
  user?: string | undefined
  address: string
}

/** A wait that refused a login. */
export interface ThrottleWait {
  of: 'user' | 'address'
  failures: number
  /** Seconds until it ends. */
  seconds: number
}

export interface Throttle<T extends Trier = Trier> {
  /** Counts nothing; for refusing early. @throws TOO_MANY_FAILURES */
  admit(by: T): void
  /**
   * Runs a check of a credential that can be guessed.
   *
   * @param check false counts as a failure, a throw as nothing
   * @throws TOO_MANY_FAILURES without checking; what the check throws
   */
  attempt(by: T, check: () => Promise<boolean>): Promise<boolean>
  /**
   * Counts a refused credential for its address.
   *
   * @param credential is counted once however often it is sent: a program that is not told of a new key guesses nothing
   * @throws TOO_MANY_FAILURES
   */
  refused(by: T, credential?: string): void
}

export interface ThrottleOptions<T extends Trier> extends ThrottleSettings {
  /** Milliseconds of a clock that only goes forward. */
  readonly now: () => number
  /** Called once for each wait, with the first who has to. */
  readonly onWait: (by: T, wait: ThrottleWait) => void
}

export function createThrottle<T extends Trier>(options: ThrottleOptions<T>): Throttle<T> {
  const { failuresPerUser, failuresPerAddress, now, onWait } = options
  const addresses = new Counts(failuresPerAddress, options)
  const users = new Counts(failuresPerUser, options)
  /** Apart from `users`: a stranger cannot keep users out of where they usually log in. */
  const usersAtHome = new Counts(failuresPerUser, options)
  const homes = new Lru<string, true>(MAX_KEYS)
  const refusedBefore = new Lru<string, true>(MAX_KEYS)

  /** The counts that a try belongs to. */
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

  /** @returns what takes it back, or makes it final */
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
  /** Since when they have not been halved. */
  since: number
  /** 0: none. */
  waitsUntil: number
  /** Whether the wait has refused no login so far. */
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

  /** @returns the remaining wait, 0 or less when there is none */
  waitOf(key: string, now: number): { milliseconds: number; failures: number; isNew: boolean } {
    const count = this.#counts.get(key)
    if (count === undefined || count.waitsUntil <= now) return { milliseconds: 0, failures: 0, isNew: false }
    const { isNew } = count
    count.isNew = false
    return { milliseconds: count.waitsUntil - now, failures: count.failures, isNew }
  }

  /** Counts a failure, until it is known to be none. */
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

/** Some directories take all these spellings for one user. */
function nameOf(user: string): string {
  return user.normalize('NFKC').toLowerCase().trim().replace(/\s+/g, ' ')
}

function homeOf(network: string, name: string): string {
  return `${network}\0${name}`
}

/** The address; of IPv6 its first 64 bits, within which a client chooses freely. */
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
