import { expect, test } from 'vitest'
import { closestWords } from './closest-words.ts'

const words = ['local', 'local_sudo', 'noop', 'remote']

test.each([
  ['locl', 2, ['local']],
  ['lcoal', 1, ['local']],
  ['LOCAL', 0, ['local']],
  ['nope', 1, []],
  ['nope', 2, ['noop']],
  ['', 3, []],
  ['x'.repeat(101), 1000, []],
])('the words closest to %s, at most %i edits away', (word, maxDistance, closest) => {
  expect(closestWords(word, words, maxDistance)).toEqual(closest)
})

test('equally close words keep their order', () => {
  expect(closestWords('host', ['cost', 'hosts', 'port', 'most'], 2)).toEqual(['cost', 'hosts', 'most'])
})
