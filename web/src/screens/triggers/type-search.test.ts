import { expect, it } from 'vitest'
import type { TriggerRecord, TriggerTypeRecord } from '../../api/records.ts'
import { byPack, joined } from './type-search.ts'

const type = (pack: string, name: string, description = ''): TriggerTypeRecord => ({
  id: name,
  uid: '',
  ref: `${pack}.${name}`,
  name,
  pack,
  description,
  payload_schema: {},
  parameters_schema: {},
  tags: [],
})
const trigger = (ref: string, of: string): TriggerRecord => ({
  id: ref,
  uid: '',
  ref,
  name: '',
  pack: '',
  type: of,
  description: '',
  parameters: {},
})

it('counts the rules of each trigger of a type', () => {
  const types = [type('core', 'hook'), type('core', 'unused')]
  const triggers = [trigger('core.1', 'core.hook'), trigger('core.2', 'core.hook'), trigger('x.1', 'gone.type')]
  const [hook, unused] = joined(types, triggers, ['core.1', 'core.1', 'gone.9'])
  expect(hook?.triggers.map(({ trigger: { ref }, rules }) => [ref, rules])).toEqual([
    ['core.1', 2],
    ['core.2', 0],
  ])
  expect(unused?.triggers).toEqual([])
})

it('finds types by words of name and description, by pack', () => {
  const all = joined([type('a', 'hook', 'A request.'), type('b', 'timer'), type('a', 'other')], [], [])
  const found = (search: string) =>
    [...byPack(all, search)].map(([pack, types]) => [pack, types.map(({ type: { name } }) => name)])
  expect(found('')).toEqual([
    ['a', ['hook', 'other']],
    ['b', ['timer']],
  ])
  expect(found('REQUEST hook')).toEqual([['a', ['hook']]])
})
