import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { printTally } from '../golden-workflows/tally.ts'
import { playModules } from './modules.ts'
import { playResults } from './results.ts'

const inOutput = 'the value does not come with the output, so no text in it can be in the way'
const reason = 'the error says why, instead of a result'
const onPurpose: Readonly<Record<string, string>> = {
  res_024: 'whole numbers of any size stay numbers',
  res_148: inOutput,
  res_149: inOutput,
  g_python_module_008: 'a class that takes no configuration is the action only where no other has run()',
  g_python_module_009: reason,
  g_python_module_010: reason,
  g_python_module_027: 'the logger has the name of svc',
  g_python_module_048: 'an action runs in the folder of its pack',
}

const folder = fileURLToPath(new URL('../golden/stackstorm/', import.meta.url))

test('actions have the results of the golden data', async () => {
  const { differences, ...tally } = await playResults(folder)
  const unexpected = differences.filter(({ id }) => onPurpose[id] === undefined)
  expect(printTally({ ...tally, differences: unexpected })).toBe('results: 111 agree, 0 differ')
})

test('actions run as the golden data says', async () => {
  const { differences, ...tally } = await playModules(folder)
  const unexpected = differences.filter(({ id }) => onPurpose[id] === undefined)
  expect(printTally({ ...tally, differences: unexpected })).toBe('modules: 25 agree, 0 differ')
})
