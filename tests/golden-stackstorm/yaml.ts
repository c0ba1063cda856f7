/** Plays `yaml.jsonl` of a folder with golden data through the reader of metadata files. */
import { readYamlDocument } from '../../src/lib/text/index.ts'
import type { Difference, Tally } from '../golden-workflows/tally.ts'
import { plain, readRows, spell } from './values.ts'

interface Row {
  readonly id: string
  readonly text: string
  readonly expect: { readonly value: unknown } | { readonly error: string; readonly message: string }
}

/** @param folder holds `yaml.jsonl` */
export function playYaml(folder: string): Tally {
  const differences: Difference[] = []
  let agree = 0
  for (const { id, text, expect } of readRows<Row>(folder, 'yaml')) {
    const read = readYamlDocument(text)
    const isRefused = 'problem' in read && read.isEmpty !== true
    const value = 'problem' in read ? null : read.value
    if ('error' in expect ? isRefused : !isRefused && spell(value) === spell(plain(expect.value))) {
      agree += 1
      continue
    }
    const expected = 'error' in expect ? `${expect.error}: ${expect.message}` : spell(plain(expect.value))
    const actual = isRefused ? `refused: ${read.problem.message}` : spell(value)
    differences.push({ id, input: JSON.stringify(text), expected, actual })
  }
  return { name: 'yaml', agree, differences }
}
