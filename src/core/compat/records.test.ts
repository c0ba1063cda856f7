/** Names in records: what becomes of random ones, there and back. */
import { describe, expect, it } from 'vitest'
import { createRandom, seedOfRun, type Random } from '../../../tests/helpers/random.ts'
import { builtinTriggerNames } from './names.ts'
import { jsonWithTheirNames, withOurNames, withTheirNames } from './records.ts'

const RECORDS = 300
const seed = seedOfRun()

type Prefix = 'svc' | 'st2'
/** Attributes with names, with data, and with neither. */
const references = ['ref', 'type', 'trigger', 'trigger_type'] as const
const named = [...references, 'trigger_types', 'timer_type', 'scope', 'uid', 'name'] as const
const data = ['parameters', 'payload', 'result', 'criteria', 'context', 'value', 'output'] as const
const others = ['id', 'description', 'pack', 'rule', 'metadata_file', '__proto', 'constructor'] as const
const foreign = ['core.local', 'default.rule', 'core.svcx.webhook', 'mine.st2.webhook', '', 'svc', 'st2'] as const

/** A text that names something as `prefix` says, or is nobody's name. */
function text(random: Random, prefix: Prefix, key: string): string {
  if (random.once(3)) return random.pick(foreign)
  const name = random.pick(builtinTriggerNames)
  if (key === 'uid')
    return `trigger${random.once(2) ? '_type' : ''}:core:${prefix}.${name}${random.once(2) ? ':0a1b' : ''}`
  if (key === 'scope') return `${prefix}kv.${random.pick(['system', 'user'])}`
  return `${key === 'name' ? '' : 'core.'}${prefix}.${name}`
}

function value(random: Random, prefix: Prefix, key: string, depth: number): unknown {
  // Never a record.
  if (key === 'name') return text(random, prefix, key)
  if (random.once(8)) return random.pick([null, 0, 1.5, true, 'a text'])
  if (depth > 0 && random.once(3)) return record(random, prefix, depth - 1)
  if (depth > 0 && random.once(4))
    return Array.from({ length: random.below(4) }, () => value(random, prefix, key, depth - 1))
  return text(random, prefix, key)
}

function record(random: Random, prefix: Prefix, depth: number): Record<string, unknown> {
  const made: Record<string, unknown> = random.once(2) ? { pack: 'core' } : {}
  for (let i = random.below(6); i > 0; i -= 1) {
    const key = random.pick([...named, ...named, ...data, ...others] as unknown as readonly [string, ...string[]])
    made[key] = value(random, prefix, key, depth)
  }
  return made
}

/** Every value below an attribute of data, by its path. */
function dataOf(given: unknown, path = ''): Map<string, unknown> {
  const found = new Map<string, unknown>()
  if (typeof given !== 'object' || given === null) return found
  for (const [key, inner] of Object.entries(given)) {
    if ((data as readonly string[]).includes(key)) found.set(`${path}.${key}`, inner)
    else for (const [at, deep] of dataOf(inner, `${path}.${key}`)) found.set(at, deep)
  }
  return found
}

describe(`${RECORDS} random records, seed ${seed}`, () => {
  const random = createRandom(seed)
  const records = (prefix: Prefix): Record<string, unknown>[] =>
    Array.from({ length: RECORDS }, () => record(random, prefix, 3))

  it('come back as they were, and are not changed themselves', () => {
    for (const [prefix, there, back] of [
      ['svc', withTheirNames, withOurNames],
      ['st2', withOurNames, withTheirNames],
    ] as const) {
      for (const given of records(prefix)) {
        const before = structuredClone(given)
        const changed = there(given)
        expect(given).toEqual(before)
        expect(back(changed)).toEqual(given)
        expect(there(changed)).toBe(changed)
      }
    }
  })

  it('keep their data, the very same', () => {
    for (const given of records('svc')) {
      const changed = dataOf(withTheirNames(given))
      for (const [path, inner] of dataOf(given)) expect(changed.get(path)).toBe(inner)
    }
  })

  it('have no name of the other side left outside data', () => {
    for (const given of records('svc')) {
      const text = JSON.stringify(withTheirNames(given), (key, inner: unknown) =>
        (data as readonly string[]).includes(key) ? undefined : inner,
      )
      expect(text).not.toMatch(/"(?:ref|type|trigger|trigger_type|timer_type)":"core\.svc\.(?!x)/)
    }
  })

  it('are the same as text and as records', () => {
    for (let i = 0; i < RECORDS; i += 1) {
      const given = references.map((key) => ({
        [key]: text(random, 'svc', key),
        description: text(random, 'svc', 'ref'),
      }))
      expect(jsonWithTheirNames(JSON.stringify(given))).toBe(JSON.stringify(withTheirNames(given)))
    }
  })
})
