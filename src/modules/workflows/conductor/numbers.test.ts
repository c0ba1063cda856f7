import { expect, test } from 'vitest'
import { createRandom } from '../../../../tests/helpers/random.ts'
import { addNumber, numberBelow } from './numbers.ts'

test('the next lower member of a set is found', () => {
  const random = createRandom(7)
  const table = new Map<string, number>()
  const members = new Set<number>()
  for (let round = 0; round < 500; round += 1) {
    const limit = random.pick([40, 2_000, 100_000])
    const number = random.below(limit)
    addNumber(table, 'own', number)
    addNumber(table, 'other', random.below(limit))
    members.add(number)
    const asked = random.below(limit + 1)
    const lower = [...members].filter((member) => member < asked)
    expect(numberBelow(table, 'own', asked)).toBe(lower.length === 0 ? undefined : Math.max(...lower))
  }
})
