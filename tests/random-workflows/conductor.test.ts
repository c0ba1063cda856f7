import { expect, test } from 'vitest'
import { seedOfRun } from '../helpers/random.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { Disagreement, play } from './play.ts'

const DAILY = 1_000
const FULL = 10_000

/** What disagrees, with the seed, the workflow and the events. */
function playAll(first: number, count: number): string {
  for (let seed = first; seed < first + count; seed += 1) {
    try {
      play(seed)
    } catch (error) {
      return String(error instanceof Disagreement ? error.message : `seed ${seed}: ${(error as Error).stack}`)
    }
  }
  return ''
}

test(`the conductor and a naive implementation agree on ${DAILY} random workflows, and each of them ends`, () => {
  expect(playAll(0, DAILY)).toBe('')
})

const seed = seedOfRun()

fullOnly(test)(`so do they on ${FULL} others (seed ${seed})`, { timeout: 300_000 }, () => {
  expect(playAll(seed, FULL)).toBe('')
})
