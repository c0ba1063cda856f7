import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { playMetadata } from './metadata.ts'
import { playYaml } from './yaml.ts'

const folder = fileURLToPath(new URL('../golden/stackstorm/', import.meta.url))

test('packs are registered as the golden data says', async () => {
  const { agree } = await playMetadata(folder)
  expect(agree).toBeGreaterThan(388)
})

test('YAML is read as the golden data says', () => {
  expect(playYaml(folder).agree).toBe(370)
})
