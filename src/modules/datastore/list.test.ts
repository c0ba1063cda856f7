/**
 * CVE-2018-20345: for any query, a list contains only what the caller can view. The expected items follow contracts 05 and
 * 11, not the sources.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDatastore, type TestDatastore, type TestUser } from '../../../tests/helpers/datastore.ts'
import { watchQueries, type QueryPlans } from '../../../tests/helpers/query-plans.ts'
import { createRandom, seedOfRun } from '../../../tests/helpers/random.ts'
import type { Grant } from '../rbac/resolve.ts'
import type { KeyValuePairRecord } from './types.ts'

const seed = seedOfRun()
const system = (name: string): string => `key_value_pair:svckv.system:${name}`
const grant = (type: string, uid: string): Grant => ({ permission_types: [type], resource_uid: uid })

const users = {
  root: { role: 'admin' },
  eye: { role: 'observer' },
  ann: {
    grants: [
      grant('key_value_pair_view', system('a')),
      grant('key_value_pair_set', system('app.b')),
      grant('key_value_pair_all', system('app.c')),
      grant('key_value_pair_delete', system('absent')),
      grant('key_value_pair_all', 'key_value_pair:svckv.user:bob:own'),
      grant('key_value_pair_view', 'key_value_pair:svckv.system:'),
      grant('action_all', 'pack:core'),
      { permission_types: ['key_value_pair_list'] },
    ],
  },
  bob: {},
  keyed: {
    role: 'admin',
    scopes: [
      { permission_types: ['key_value_pair_view'], resource_uid: system('a') },
      { permission_types: ['key_value_pair_view'], resource_uid: 'key_value_pair:svckv.user:keyed:own' },
      { permission_types: ['key_value_pair_view'], resource_uid: 'key_value_pair:svckv.user:bob:own' },
    ],
  },
  wide: { scopes: [{ permission_types: ['key_value_pair_view'] }] },
  narrow: { scopes: [{ permission_types: ['action_view'] }] },
} satisfies Record<string, TestUser>
type Name = keyof typeof users
const names = Object.keys(users) as [Name, ...Name[]] // it has some

const systemNames = ['a', 'app.b', 'app.c', 'app.d', 'apple', 'b', 'B', 'zebra', 'é', '__proto__', 'a%', 'a_']
const ownNames = ['own', 'app.own', 'a']

/** What a caller may view of the system scope: everything, or these. */
const mayViewSystem: Record<Name, 'all' | string[]> = {
  root: 'all',
  eye: 'all',
  ann: ['a', 'app.b', 'app.c'],
  bob: [],
  keyed: ['a'],
  wide: [],
  narrow: [],
}
/** Of one's own items. */
const mayViewOwn: Record<Name, 'all' | string[]> = {
  root: 'all',
  eye: 'all',
  ann: 'all',
  bob: 'all',
  keyed: ['own'],
  wide: 'all',
  narrow: [],
}

let place: TestDatastore
let plans: QueryPlans

beforeAll(async () => {
  place = await startDatastore({
    users,
    maxPageSize: 5,
    around(database, path) {
      plans = watchQueries(database, path)
      return plans.database
    },
  })
  for (const name of systemNames) {
    await place.put(name, `canary of the system, ${name}`, { secret: name.startsWith('app') })
  }
  for (const name of ['app.expired', 'gone']) await place.put(name, 'canary', { ttl: 60 })
  await place.expire()
  for (const user of names) {
    for (const name of ownNames) await place.put(name, `canary of ${user}, ${name}`, { scope: 'user', user })
  }
})

afterAll(() => place.stop())

const byBytes = (a: string, b: string): number => Buffer.from(a).compare(Buffer.from(b))
const among = (allowed: 'all' | string[], all: string[]): string[] =>
  all.filter((name) => allowed === 'all' || allowed.includes(name)).sort(byBytes)

interface Question {
  as: Name
  query: Record<string, string>
}

/** In order, as `<scope> <user> <name>`; a number is the status of a refusal. */
function answerTo({ as, query }: Question): number | { all: string[]; page: string[] } {
  const { scope = 'system', user, prefix = '', name, sort = '', limit, offset = '0' } = query
  const isAdmin = as === 'root'
  if (limit === '-1' && !isAdmin) return 403
  if (limit !== undefined && Number(limit) > 5 && !isAdmin) return 403
  if (user !== undefined && user !== as && !isAdmin) return 403
  const wants = user !== undefined ? 'user' : scope.replace('svckv.', '')
  if (query['decrypt'] === 'true' && wants !== 'user' && !isAdmin) return 403
  const owner = user ?? as
  const own = owner === as ? mayViewOwn[as] : 'all'
  const fits = (each: string): boolean => each.startsWith(prefix) && (name === undefined || each === name)
  const section = (mark: string, visible: string[]): string[] => {
    const found = visible.filter(fits).map((each) => `${mark} ${each}`)
    return /(^|,)-name/.test(sort) ? found.reverse() : found
  }
  const sections = [
    wants === 'user' ? [] : section('svckv.system', among(mayViewSystem[as], systemNames)),
    wants === 'system' ? [] : section(`svckv.user ${owner}`, among(own, ownNames)),
  ]
  const all = (/(^|,)-scope/.test(sort) ? sections.reverse() : sections).flat()
  const start = Number(offset)
  const length = limit === undefined ? (isAdmin ? 100 : 5) : limit === '-1' ? Infinity : Number(limit)
  return { all, page: all.slice(start, start + length) }
}

const describeRecord = ({ scope, user, name }: KeyValuePairRecord): string =>
  [scope, ...(user === undefined ? [] : [user]), name].join(' ')

/** Whether the value is as it should be, in words. */
function stateOf({ user, name, value, secret, encrypted }: KeyValuePairRecord): string {
  const plain = user === undefined ? `canary of the system, ${name}` : `canary of ${user}, ${name}`
  if (value === plain && !encrypted) return secret ? 'decrypted' : 'plain'
  return secret && encrypted && /^[0-9A-F]+$/.test(value) ? 'encrypted' : `wrong: ${value}`
}

interface Seen {
  question: Question
  status: number
  total?: string | null
  records?: string[]
}

function expectedOf(question: Question): Seen {
  const answer = answerTo(question)
  if (typeof answer === 'number') return { question, status: answer }
  const secrets = question.query['decrypt'] === 'true' ? 'decrypted' : 'encrypted'
  const records = answer.page.map((text) => `${text}: ${text.startsWith('svckv.system app') ? secrets : 'plain'}`)
  return { question, status: 200, total: String(answer.all.length), records }
}

async function ask(question: Question): Promise<Seen> {
  const path = `/v1/keys?${new URLSearchParams(question.query).toString()}`
  const { status, body, text, headers } = await place.call<KeyValuePairRecord[]>(question.as, 'GET', path)
  if (status !== 200) return { question, status, ...(text.includes('canary') ? { records: [text] } : {}) }
  const records = body.map((record) => `${describeRecord(record)}: ${stateOf(record)}`)
  return { question, status, total: headers.get('x-total-count'), records }
}

describe('a list contains what the caller can view', () => {
  test.for(names)('%s, one parameter at a time', async (as) => {
    expect(await ask({ as, query: {} })).toEqual(expectedOf({ as, query: {} }))
    for (const [parameter, value] of [
      ['scope', 'system'],
      ['scope', 'svckv.system'],
      ['scope', 'user'],
      ['scope', 'svckv.user'],
      ['scope', 'all'],
      ['user', 'bob'],
      ['user', as],
      ['decrypt', 'true'],
      ['prefix', 'app'],
      ['prefix', 'é'],
      ['prefix', '%'],
      ['name', 'a'],
      ['name', 'zebra'],
      ['name', "' or 1=1 --"],
      ['name', '__proto__'],
      ['limit', '2'],
      ['limit', '-1'],
      ['limit', '6'],
      ['offset', '1'],
      ['sort', '-name'],
      ['sort', 'value,id'],
    ] as const) {
      const question = { as, query: { [parameter]: value } }
      expect(await ask(question)).toEqual(expectedOf(question))
    }
  })

  test(`all parameters together (seed ${seed})`, async () => {
    const random = createRandom(seed)
    const choices: Record<string, readonly [string, ...string[]]> = {
      scope: ['system', 'user', 'all', 'svckv.user'],
      user: names,
      prefix: ['a', 'app.', 'app.own', 'z', '__', 'é', 'a%', ''],
      name: ['a', 'app.b', 'own', 'nothing', 'B'],
      decrypt: ['true', 'false'],
      limit: ['1', '3', '5', '100', '-1'],
      offset: ['0', '1', '4', '11', '50'],
      sort: ['name', '-name', '-scope', '-scope,-name', 'scope,-name', 'drop table'],
    }
    let seen = 0
    for (let n = 0; n < 600; n += 1) {
      const query: Record<string, string> = {}
      for (const [parameter, values] of Object.entries(choices)) {
        if (random.once(parameter === 'name' || parameter === 'user' ? 5 : 2)) query[parameter] = random.pick(values)
      }
      // Empty is the same as absent.
      if (query['prefix'] === '') delete query['prefix']
      const question = { as: random.pick(names), query }
      const answer = await ask(question)
      expect(answer).toEqual(expectedOf(question))
      seen += answer.records?.length ?? 0
    }
    expect(seen).toBeGreaterThan(100)
  })
})

describe('without access control', () => {
  test('users see system items and their own, API keys only the items in their scopes', async () => {
    const open = await startDatastore({
      accessControl: false,
      users: { keyed: { scopes: [{ permission_types: ['key_value_pair_all'], resource_uid: system('a') }] } },
    })
    try {
      for (const name of ['a', 'b']) await open.put(name, 'x', { secret: true })
      await open.put('mine', 'x', { scope: 'user' }, 'ann')
      await open.put('theirs', 'x', { scope: 'user' }, 'bob')
      const list = async (as: string, query: string): Promise<unknown[]> => {
        const answer = await open.call<KeyValuePairRecord[]>(as, 'GET', `/v1/keys?${query}`)
        return answer.status === 200 ? answer.body.map(({ name }) => name) : [answer.status]
      }
      expect(await list('ann', '')).toEqual(['a', 'b'])
      expect(await list('ann', 'scope=all')).toEqual(['a', 'b', 'mine'])
      expect(await list('ann', 'scope=user&decrypt=true')).toEqual(['mine'])
      expect(await list('ann', 'scope=all&decrypt=true')).toEqual(['a', 'b', 'mine'])
      expect(await list('ann', 'user=bob')).toEqual([403])
      expect(await list('keyed', 'scope=all')).toEqual(['a'])
      expect(await list('keyed', 'decrypt=true')).toEqual([403])
    } finally {
      await open.stop()
    }
  })
})

describe('query plans of a list', () => {
  const list = (from: TestDatastore, query: string) =>
    from.call<KeyValuePairRecord[]>('root', 'GET', `/v1/keys?${query}`)

  test('use an index', async () => {
    for (const query of ['', 'scope=all&prefix=app&limit=2&offset=1', 'name=a', 'sort=-name']) {
      plans.take()
      await list(place, query)
      const reads = plans
        .take()
        .filter((read) => !/USING (COVERING )?INDEX/.test(read) || /SCAN (?!some)|TEMP/.test(read))
      expect({ query, reads }).toEqual({ query, reads: [] })
    }
  })

  test('cipher text has an index of its own', async () => {
    const { value } = (await place.call<KeyValuePairRecord>('root', 'GET', '/v1/keys/apple')).body
    plans.take()
    const decrypt = place.datastore.templates({ user: 'root' }).filters?.['decrypt_kv']
    expect(decrypt?.([value], {})).toBe('canary of the system, apple')
    expect(plans.take()).toEqual([expect.stringContaining('USING INDEX key_value_pairs_sealed')])
  })

  describe('a list of many items', () => {
    const all = Array.from({ length: 2500 }, (_, n) => `key-${String(n).padStart(5, '0')}`)
    let many: TestDatastore
    let queries: QueryPlans

    beforeAll(async () => {
      many = await startDatastore({
        users: { root: { role: 'admin' } },
        around(database, path) {
          queries = watchQueries(database, path)
          return queries.database
        },
      })
      const insert = (name: string, more: { user?: string; expire_timestamp?: string } = {}) => ({
        query: many.database.build.insertInto('key_value_pairs').values({
          id: `${name}${more.user ?? ''}`,
          scope: more.user === undefined ? 'svckv.system' : 'svckv.user',
          user: '',
          name,
          secret: 0,
          encrypted: 0,
          value: name.repeat(20),
          ...more,
        }),
      })
      const expired = { expire_timestamp: '2001-01-01T00:00:00.000000Z' }
      const steps = all.flatMap((name) => [
        insert(name),
        insert(`${name}-expired`, expired),
        insert(name, { user: 'ann' }),
      ])
      await many.database.write({ steps, facts: [] })
    })

    afterAll(() => many.stop())

    test('is counted on the scan thread with an index', async () => {
      queries.take()
      const answer = await list(many, 'limit=2&offset=2400')
      expect([answer.headers.get('x-total-count'), answer.body.map(({ name }) => name)]).toEqual([
        '2500',
        all.slice(2400, 2402),
      ])
      const reads = queries.take()
      const onThread = reads.filter((read) => read.startsWith('thread: '))
      expect(onThread).toHaveLength(2)
      // All and those that have expired, in one statement: what expires may be removed at any time.
      const counting = onThread.filter((read) => read.includes('COVERING INDEX'))
      expect(counting).toHaveLength(1)
      expect(counting[0]).toContain('key_value_pairs_expiry')
      expect(reads.filter((read) => !/USING (COVERING )?INDEX/.test(read))).toEqual([])
    })

    test('is streamed in batches, also during changes', async () => {
      const answering = list(many, 'limit=-1&sort=-scope,-name')
      const gone = many.call('root', 'DELETE', `/v1/keys/${all[0]}`)
      const answer = await answering
      await gone
      expect(answer.headers.get('x-total-count')).toMatch(/^(2500|2499)$/)
      expect(answer.headers.get('x-limit')).toBeNull()
      expect(answer.body.map(({ name }) => name).slice(0, 2499)).toEqual(all.slice(1).reverse())
    })

    test('works for a single user too', async () => {
      const answer = await list(many, 'user=ann&limit=-1')
      expect(answer.body.map(({ name }) => name)).toEqual(all)
      expect(answer.headers.get('x-total-count')).toBe('2500')
    })
  })
})
