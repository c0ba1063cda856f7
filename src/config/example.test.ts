import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { renderExample } from './example.ts'
import { parseIni } from '../lib/text/ini.ts'
import { loadConfig } from './load.ts'
import { optionEntries } from './options.ts'

const example = readFileSync(new URL('../../svc.conf.example', import.meta.url), 'utf8')
const uncommented = example.replace(/^#(?=[a-z_]+ =)/gm, '')

describe('svc.conf.example', () => {
  it('is what the table of options says; run "npm run generate"', () => {
    expect(example).toBe(renderExample())
  })

  it('shows every option once, commented out', () => {
    expect(parseIni(example).problems).toEqual([])
    expect([...parseIni(example).sections.values()].every((values) => values.size === 0)).toBe(true)
    const keys = [...parseIni(uncommented).sections].flatMap(([section, values]) =>
      [...values.keys()].map((name) => `${section}.${name}`),
    )
    expect(keys).toEqual(optionEntries.map(({ key }) => key))
  })

  it('changes nothing when all its options are uncommented', () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-example-'))
    try {
      const path = join(folder, 'all.conf')
      writeFileSync(path, uncommented)
      const loaded = loadConfig({ files: [path], env: {}, cwd: folder })
      const plain = loadConfig({ files: [], env: {}, cwd: folder })
      expect(loaded.config).toEqual(plain.config)
      expect(loaded.warnings).toEqual(plain.warnings)
      expect(loaded.notes).toEqual([])
      expect(Object.values(loaded.sources).every((source) => source.startsWith(path))).toBe(true)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it('has no long lines and says something about every option', () => {
    expect(example.split('\n').filter((line) => line.length > 100)).toEqual([])
    expect(optionEntries.filter(({ option }) => !/^[A-Za-z].*[.]$/s.test(option.about)).map(({ key }) => key)).toEqual(
      [],
    )
  })
})
