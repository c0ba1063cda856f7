import { expect, it } from 'vitest'
import { tier } from '../../../tests/helpers/tiers.ts'
import { createMatching, type Matching } from './matching.ts'
import type { AliasRecord } from './types.ts'

const aliasOf = (name: string, formats: AliasRecord['formats'], more: Partial<AliasRecord> = {}): AliasRecord => ({
  id: name,
  uid: `action_alias:chat:${name}`,
  ref: `chat.${name}`,
  name,
  pack: 'chat',
  description: '',
  enabled: true,
  action_ref: 'core.noop',
  formats,
  ack: {},
  result: {},
  extra: {},
  immutable_parameters: {},
  ...more,
})

function matchingOf(aliases: AliasRecord[]): { matching: Matching; reads: () => number } {
  let reads = 0
  const list = (): AliasRecord[] => {
    reads += 1
    return aliases
  }
  return {
    matching: createMatching({ list, findByRef: () => undefined, named: () => [] }),
    reads: () => reads,
  }
}

const found = (matching: Matching, command: string): Promise<string> =>
  matching.find(command).then(
    ({ alias }) => alias.ref,
    (error: Error) => error.message,
  )

it('an alias that changes, comes or goes is known at once, and the others are not read again', async () => {
  const { matching, reads } = matchingOf([aliasOf('one', ['one {{ x }}']), aliasOf('two', ['two {{ x }}'])])
  expect(await found(matching, 'one x')).toBe('chat.one')
  matching.note(aliasOf('one', ['uno {{ x }}']), false)
  matching.note(aliasOf('three', ['three {{ x }}'], { pack: 'apart', ref: 'apart.three' }), false)
  matching.note(aliasOf('two', ['two {{ x }}'], { enabled: false }), false)
  expect(await found(matching, 'one x')).toMatch(/matched no patterns/)
  expect(await found(matching, 'uno x')).toBe('chat.one')
  expect(await found(matching, 'three x')).toBe('apart.three')
  expect(await found(matching, 'two x')).toMatch(/matched no patterns/)
  expect(matching.all().map(({ alias }) => alias.ref)).toEqual(['apart.three', 'chat.one'])
  matching.note(aliasOf('one', []), true)
  expect(await found(matching, 'uno x')).toMatch(/matched no patterns/)
  expect(reads()).toBe(1)
})

it('an alias that changes before anybody asks is read with the others', async () => {
  const { matching } = matchingOf([aliasOf('one', ['one {{ x }}'])])
  matching.note(aliasOf('one', ['old {{ x }}']), false)
  expect(await found(matching, 'one x')).toBe('chat.one')
})

it('among many aliases, some of which would take for ever elsewhere, others work meanwhile', async () => {
  const [many, evil] = tier === 'full' ? [10_000, 30] : [1_000, 12]
  const { matching } = matchingOf([
    ...Array.from({ length: many }, (_, i) => aliasOf(`app${i}`, [`deploy app${i} to {{ stage = test }}`])),
    ...Array.from({ length: evil }, (_, i) => aliasOf(`evil${i}`, [`(?:a+)+(?:a|aa)+(?:a*)*b${i}`])),
  ])
  matching.all()
  let turns = 0
  let isOver = false
  const turn = (): void => {
    turns += 1
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  expect(await found(matching, 'deploy app77 to live')).toBe('chat.app77')
  const before = turns
  expect(await found(matching, 'a'.repeat(9_000))).toMatch(/matched no patterns/)
  isOver = true
  expect(turns - before).toBeGreaterThan(0)
})
