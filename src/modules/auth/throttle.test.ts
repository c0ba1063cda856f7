import { beforeEach, describe, expect, test } from 'vitest'
import { isAppError } from '../../core/errors.ts'
import {
  createThrottle,
  networkOf,
  type Throttle,
  type ThrottleSettings,
  type Trier,
  type ThrottleWait,
} from './throttle.ts'

/** Milliseconds. */
let now: number
let waits: { by: Trier; wait: ThrottleWait }[]
let throttle: Throttle

function use(settings: Partial<ThrottleSettings> = {}): void {
  now = 1_000_000
  waits = []
  throttle = createThrottle({
    failuresPerUser: 3,
    failuresPerAddress: 8,
    windowSeconds: 300,
    maxWaitSeconds: 60,
    ...settings,
    now: () => now,
    onWait: (by, wait) => waits.push({ by, wait }),
  })
}

beforeEach(() => use())

const at = (address: string, user = 'alice'): Trier => ({ address, user })
const here = at('192.0.2.1')

/** Seconds to wait of a refusal; anything else is thrown on. */
function secondsOf(error: unknown): number {
  if (!isAppError(error) || error.code !== 'TOO_MANY_FAILURES') throw error
  return Number(error.details?.['retry_after'])
}

const attempt = (by: Trier, isRight: boolean): Promise<boolean | number> =>
  throttle.attempt(by, () => Promise.resolve(isRight)).catch(secondsOf)

async function fail(by: Trier, times: number): Promise<(boolean | number)[]> {
  const outcomes: (boolean | number)[] = []
  for (let n = 0; n < times; n++) outcomes.push(await attempt(by, false))
  return outcomes
}

function refused(address: string, credential?: string): number | undefined {
  try {
    throttle.refused({ address }, credential)
    return undefined
  } catch (error) {
    return secondsOf(error)
  }
}

describe('the waits', () => {
  test('nothing changes below the limit, then each failure doubles the wait up to the longest', async () => {
    expect(await fail(here, 3)).toEqual([false, false, false])
    for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
      expect(await attempt(here, true)).toBe(seconds)
      now += seconds * 1000 - 1
      expect(await attempt(here, true)).toBe(1)
      now += 1
      expect(await attempt(here, false)).toBe(false)
    }
  })

  test('what is refused without a look counts as nothing and is not looked at', async () => {
    await fail(here, 3)
    let looks = 0
    for (let n = 0; n < 50; n++) {
      await throttle.attempt(here, () => Promise.resolve(++looks > 0)).catch(secondsOf)
      expect(() => throttle.admit(here)).toThrow('try again in 1 s')
    }
    expect(looks).toBe(0)
    now += 1000
    expect(() => throttle.admit(here)).not.toThrow()
    await fail(here, 1)
    expect(await attempt(here, true)).toBe(2)
  })

  test('a wait begins when the check has ended', async () => {
    await fail(here, 2)
    await throttle.attempt(here, () => {
      now += 10_000
      return Promise.resolve(false)
    })
    expect(await attempt(here, true)).toBe(1)
  })

  test('are told once each, with who ran into them first', async () => {
    await fail(here, 3)
    expect(waits).toEqual([])
    const first = { ...here, requestId: 'first' }
    await attempt(first, true)
    await attempt(here, true)
    expect(waits).toEqual([{ by: first, wait: { of: 'user', failures: 3, seconds: 1 } }])
    now += 1000
    await fail(here, 3)
    expect(waits).toHaveLength(2)
    expect(waits[1]).toEqual({ by: here, wait: { of: 'user', failures: 4, seconds: 2 } })
  })

  test('counts are halved with each window, and forgotten in the end', async () => {
    await fail(here, 2)
    now += 299_999
    expect(await fail(here, 1)).toEqual([false])
    expect(await attempt(here, true)).toBe(1)
    // 3 failures: now 1, and two more to the limit.
    now += 300_000
    expect(await fail(here, 3)).toEqual([false, false, 1])
    now += 1_000_000
    expect(await fail(here, 4)).toEqual([false, false, false, 1])
  })

  test.each([0, 1])('a limit of %d', async (limit) => {
    use({ failuresPerUser: limit, failuresPerAddress: 0 })
    const outcomes = await fail(here, 4)
    expect(outcomes).toEqual(limit === 0 ? [false, false, false, false] : [false, 1, 1, 1])
  })
})

describe('many at once', () => {
  test('wrong ones are no more than the limit allows, right ones are all admitted', async () => {
    const looks: ((isRight: boolean) => void)[] = []
    const look = (): Promise<boolean> => new Promise((resolve) => looks.push(resolve))
    const outcomes = Promise.all(Array.from({ length: 64 }, () => throttle.attempt(here, look).catch(secondsOf)))
    expect(looks).toHaveLength(3)
    looks.forEach((answer) => answer(false))
    expect((await outcomes).filter((outcome) => outcome === false)).toHaveLength(3)

    use()
    for (let n = 0; n < 100; n++)
      expect(await Promise.all([attempt(here, true), attempt(here, true)])).toEqual([true, true])
  })

  test('what succeeds takes the wait back that its failure would have brought', async () => {
    await fail(here, 2)
    expect(await attempt(here, true)).toBe(true)
    expect(await attempt(here, true)).toBe(true)
    expect(await fail(at('198.51.100.1'), 2)).toEqual([false, 1])
  })

  test('a check that cannot decide counts as nothing', async () => {
    for (let n = 0; n < 20; n++) {
      await expect(throttle.attempt(here, () => Promise.reject(new Error('directory gone')))).rejects.toThrow('gone')
    }
    expect(await fail(here, 4)).toEqual([false, false, false, 1])
  })
})

describe('users', () => {
  test('are counted from wherever they are tried', async () => {
    expect([...(await fail(at('192.0.2.1'), 1)), ...(await fail(at('192.0.2.2'), 1))]).toEqual([false, false])
    expect(await fail(at('192.0.2.3'), 2)).toEqual([false, 1])
    expect(await attempt(at('192.0.2.4'), true)).toBe(1)
    expect(await attempt(at('192.0.2.4', 'bob'), true)).toBe(true)
  })

  test('one of many spellings is one user', async () => {
    for (const spelling of ['Alice', ' aLICE ', '\uFF41lice']) await fail(at('192.0.2.1', spelling), 1)
    expect(await attempt(here, true)).toBe(1)
    await fail(at('192.0.2.1', 'a  b'), 2)
    await fail(at('192.0.2.1', 'a b'), 1)
    expect(await attempt(at('192.0.2.9', 'A\tB'), true)).toBe(1)
  })

  test('a stranger does not keep a user out of where the user has logged in', async () => {
    expect(await attempt(here, true)).toBe(true)
    for (let n = 0; n < 10; n++) {
      await fail(at(`198.51.100.${n}`), 1)
      now += 1000
    }
    expect(await attempt(at('198.51.100.77'), true)).toBeGreaterThan(1)
    expect(await attempt(here, true)).toBe(true)
    // There the failures are counted too, apart, and a success forgets them.
    expect(await fail(here, 2)).toEqual([false, false])
    expect(await attempt(here, true)).toBe(true)
    expect(await fail(here, 4)).toEqual([false, false, false, 1])
  })

  test('the success of a user does not help the one who guesses', async () => {
    await fail(at('198.51.100.1'), 2)
    expect(await attempt(here, true)).toBe(true)
    expect(await fail(at('198.51.100.1'), 2)).toEqual([false, 1])
  })
})

describe('addresses', () => {
  test('are counted whoever is tried, and a success in between helps nothing', async () => {
    for (let n = 0; n < 7; n++) {
      expect(await attempt(at('192.0.2.1', `user${n}`), false)).toBe(false)
      expect(await attempt(at('192.0.2.1', 'mallory'), true)).toBe(true)
    }
    expect(await attempt(at('192.0.2.1', 'user7'), false)).toBe(false)
    expect(await attempt(at('192.0.2.1', 'mallory'), true)).toBe(1)
    expect(waits).toEqual([{ by: at('192.0.2.1', 'mallory'), wait: { of: 'address', failures: 8, seconds: 1 } }])
    expect(await attempt(at('192.0.2.2', 'mallory'), true)).toBe(true)
  })

  test('refused credentials count, each once, for the address alone', async () => {
    for (let n = 0; n < 100; n++) expect(refused('192.0.2.1', 'the old key')).toBeUndefined()
    for (let n = 0; n < 7; n++) expect(refused('192.0.2.1', `guess ${n}`)).toBeUndefined()
    expect(refused('192.0.2.1', 'one more')).toBe(1)
    expect(await attempt(here, true)).toBe(1)
    expect(refused('192.0.2.1', 'the old key')).toBeUndefined()
    expect(refused('192.0.2.2', 'one more')).toBeUndefined()
    expect(await attempt(at('192.0.2.2'), true)).toBe(true)
  })

  test('what has no value to know again counts each time', () => {
    for (let n = 0; n < 8; n++) expect(refused('192.0.2.1')).toBeUndefined()
    expect(refused('192.0.2.1')).toBe(1)
  })

  test('a user that comes along does not count', async () => {
    use({ failuresPerUser: 1 })
    throttle.refused(here)
    expect(await attempt(here, true)).toBe(true)
  })

  test('0 counts none', () => {
    use({ failuresPerAddress: 0 })
    for (let n = 0; n < 100; n++) expect(refused('192.0.2.1')).toBeUndefined()
  })

  test.each([
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::1', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['1::', '1:0:0:0::/64'],
    ['::1', '::1'],
    ['::ffff:192.0.2.1', '::ffff:c000:201'],
    ['192.0.2.1', '192.0.2.1'],
    ['', ''],
  ])('%s counts as %s', (address, network) => {
    expect(networkOf(address)).toBe(network)
  })

  test('of IPv6 a whole /64 is one', async () => {
    for (let n = 0; n < 8; n++) expect(refused(`2001:db8::${n}`)).toBeUndefined()
    expect(refused('2001:db8::ffff:1')).toBe(1)
    expect(refused('2001:db8:0:1::1')).toBeUndefined()
  })
})

test('many names push out other names, but not the own address', async () => {
  use({ failuresPerAddress: 30_000 })
  await fail(at('192.0.2.9', 'victim'), 3)
  for (let n = 0; n < 10_000; n++) await attempt(at('192.0.2.1', `user${n}`), false)
  expect(await attempt(at('192.0.2.9', 'victim'), false)).toBe(false)
  for (let n = 0; n < 20_000; n++) await attempt(at('192.0.2.1', `name${n}`), false)
  expect(await attempt(at('192.0.2.1', 'mallory'), true)).toBe(1)
})
