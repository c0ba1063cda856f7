import { describe, expect, test } from 'vitest'
import type { SecretInput } from './prompt.ts'
import { askObject, confirm, secretNames, type Questions } from './questions.ts'

interface Fixture {
  questions: Questions
  /** What is asked; secrets begin with `*`. */
  asked: string[]
  noted: string[]
}

/** @param answers empty ones when there are no more */
function open(answers: readonly string[], { isTerminal = false, allowsTemplates = false } = {}): Fixture {
  const rest = [...answers]
  const asked: string[] = []
  const noted: string[] = []
  const input: SecretInput = {
    ask: () => Promise.reject(new Error('not used')),
    askTwice: () => Promise.reject(new Error('not used')),
    askKey: () => Promise.reject(new Error('not used')),
    askFor(question, isSecret) {
      asked.push(isSecret ? `*${question}` : question)
      return Promise.resolve(rest.shift() ?? '')
    },
    isTerminal: () => isTerminal,
    hasEnded: () => rest.length === 0,
    isUnused: () => answers.length === 0,
    close: () => undefined,
  }
  return { questions: { input, note: (text) => noted.push(text), allowsTemplates }, asked, noted }
}

const object = (properties: Record<string, unknown>, more = {}): Record<string, unknown> => ({
  type: 'object',
  properties,
  ...more,
})

describe('one property', () => {
  const answer = async (schema: Record<string, unknown>, text: string, more = {}): Promise<unknown> =>
    (await askObject(open([text], more).questions, object({ it: schema }), {}))['it']

  test('is of its type', async () => {
    expect(await answer({ type: 'integer' }, '7')).toBe(7)
    expect(await answer({ type: 'boolean' }, 'No')).toBe(false)
    expect(await answer({ type: 'array', items: { type: 'integer' } }, '1, 2')).toEqual([1, 2])
    expect(await answer({ type: 'object' }, 'a=1')).toEqual({ a: '1' })
    expect(await answer({ type: 'array', items: [{}, {}] }, '["a", {"b": 1}]')).toEqual(['a', { b: 1 }])
    expect(await answer({}, '7')).toBe('7')
    await expect(answer({ type: 'integer' }, 'seven')).rejects.toThrow('"it"')
  })

  test('is one of those that can be chosen, as it stands there', async () => {
    expect(await answer({ enum: [1, 'two'] }, '1')).toBe(1)
    expect(await answer({ type: 'string', enum: ['a', 'b'] }, ' b')).toBe('b')
    await expect(answer({ type: 'string', enum: ['a', 'b'] }, 'c')).rejects.toThrow('one of: a, b')
  })

  test('may be a template only where that is said, and only for text', async () => {
    const allowsTemplates = { allowsTemplates: true }
    const choice = { type: 'string', enum: ['a'] }
    expect(await answer(choice, '{{ svckv.system.it }}', allowsTemplates)).toBe('{{ svckv.system.it }}')
    await expect(answer(choice, '{{ svckv.system.it }}')).rejects.toThrow('one of')
    await expect(answer({ type: 'integer' }, '{{ svckv.system.it }}', allowsTemplates)).rejects.toThrow('"it"')
  })

  test('an empty answer is what is there, the default, or nothing', async () => {
    const schema = object({ it: { type: 'integer', default: 3 }, other: { type: 'string' } })
    expect(await askObject(open([]).questions, schema, {})).toEqual({ it: 3 })
    expect(await askObject(open([]).questions, schema, { it: 0, other: 'x' })).toEqual({ it: 0, other: 'x' })
    await expect(askObject(open([]).questions, object({ it: { required: true } }), {})).rejects.toThrow('is required')
    await expect(askObject(open([]).questions, object({ it: {} }, { required: ['it'] }), {})).rejects.toThrow(
      'required',
    )
  })

  test('says nothing of a secret', async () => {
    const { questions, asked } = open(['x'])
    const schema = object({ it: { type: 'integer', secret: true, default: 1234 } })
    const failing = askObject(questions, schema, {})
    await expect(failing).rejects.toThrow('The value of "it" is not of type integer.')
    expect(asked).toEqual(['*it (integer) [********]'])
    const nested = open([])
    const list = { type: 'array', items: { type: 'string', secret: true } }
    await askObject(nested.questions, object({ list }), { list: ['hunter2'] })
    expect(nested.asked).toEqual(['*list (array) [********]'])
  })

  test('is asked for again at a terminal, until there is nobody', async () => {
    const { questions, noted } = open(['x', '5'], { isTerminal: true })
    expect(
      await askObject(questions, object({ it: { type: 'integer' }, other: {} }), { other: 'o' }).catch(String),
    ).toBe('Error: End of input; nothing was changed.')
    expect(noted).toEqual([expect.stringContaining('"x" is not a whole number')])
    const gone = open([], { isTerminal: true })
    await expect(askObject(gone.questions, object({ it: { required: true } }), {})).rejects.toThrow('End of input')
  })

  test('carries nothing that a terminal would obey', async () => {
    const { questions, asked, noted } = open(['x', '1', ''], { isTerminal: true })
    const evil = '\u001b[2J'
    await askObject(questions, object({ [evil]: { type: 'integer', description: evil, default: evil } }), {})
    expect(asked.join('') + noted.join('')).not.toContain('\u001b')
  })
})

describe('parts', () => {
  const account = object({ user: { required: true }, limits: object({ calls: { type: 'integer' } }) })

  test('are asked for when they are wanted or there', async () => {
    const schema = object({ account })
    const unwanted = open(['n'])
    expect(await askObject(unwanted.questions, schema, {})).toEqual({})
    expect(unwanted.asked).toEqual(['account (object). Set it? (y/n) [n]'])
    const wanted = open(['y', 'ann', '5'])
    expect(await askObject(wanted.questions, schema, {})).toEqual({ account: { user: 'ann', limits: { calls: 5 } } })
    const present = open(['', '7'])
    expect(await askObject(present.questions, schema, { account: { user: 'bob', more: 1 } })).toEqual({
      account: { user: 'bob', more: 1, limits: { calls: 7 } },
    })
    expect(present.asked).toEqual(['account.user (text) [bob]', 'account.limits.calls (integer) [none]'])
  })

  test('are left out when nothing is in them', async () => {
    expect(await askObject(open([]).questions, object({ part: object({ a: {} }) }), {})).toEqual({})
    expect(await askObject(open([]).questions, object({ part: object({ a: { default: 1 } }) }), {})).toEqual({
      part: { a: 1 },
    })
  })

  test('items are counted, and keep their place', async () => {
    const schema = object({ hosts: { type: 'array', items: account } })
    const { questions, asked } = open(['2', '', '', 'bob'])
    expect(await askObject(questions, schema, { hosts: [{ user: 'ann', key: '********' }] })).toEqual({
      hosts: [{ user: 'ann', key: '********' }, { user: 'bob' }],
    })
    expect(asked[0]).toBe('hosts (array); how many? [1]')
    expect(await askObject(open(['0']).questions, schema, { hosts: [{ user: 'ann' }] })).toEqual({ hosts: [] })
    expect(await askObject(open([]).questions, schema, {})).toEqual({})
    await expect(askObject(open(['1000000']).questions, schema, {})).rejects.toThrow('from 0 to 100')
  })

  test('what stands where a list should is asked for as it is', async () => {
    const { questions, asked } = open([])
    const schema = object({ hosts: { type: 'array', items: account } })
    expect(await askObject(questions, schema, { hosts: '{{ svckv.system.hosts }}' })).toEqual({
      hosts: '{{ svckv.system.hosts }}',
    })
    expect(asked).toEqual(['hosts (array) [{{ svckv.system.hosts }}]'])
  })
})

test('yes or no', async () => {
  expect(await confirm(open([]).questions, 'Sure?', true)).toBe(true)
  expect(await confirm(open(['YES']).questions, 'Sure?', false)).toBe(true)
  const { questions, asked } = open(['perhaps', 'n'], { isTerminal: true })
  expect(await confirm(questions, 'Sure?', true)).toBe(false)
  expect(asked).toEqual(['Sure? (y/n) [y]', 'Sure? (y/n) [y]'])
  await expect(confirm(open(['perhaps']).questions, 'Sure?', true)).rejects.toThrow('y or n')
  await expect(confirm(open([], { isTerminal: true }).questions, 'Sure?', true)).rejects.toThrow('End of input')
})

test('names of secrets are those of what holds them', () => {
  const schema = object({
    token: { secret: true },
    plain: { type: 'string', default: { secret: true } },
    account: object({ password: { type: 'string', secret: true }, user: {} }),
    list: { type: 'array', items: object({ key: { secret: true } }) },
    labels: { type: 'object', patternProperties: { '^s': { secret: true } } },
  })
  expect(secretNames(schema)).toEqual(['token', 'password', 'list', 'labels'])
})
