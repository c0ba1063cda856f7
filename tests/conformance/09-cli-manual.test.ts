/** Contract 09: the manual page, as the programs that show such pages read it. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { renderManual } from '../../src/cli/reference/manual.ts'
import { leavesOf, readReference, type CommandPage } from '../../src/cli/reference/tree.ts'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { projectRoot } from '../helpers/server.ts'

const page = readFileSync(join(projectRoot, 'docs', 'svc.1'), 'utf8')

beforeAll(() => ensureDebianPackage('groff-base', '/usr/bin/groff'))

/** What is on paper, or on a terminal, without bold. */
function show(source: string): string {
  return execFileSync('/usr/bin/groff', ['-man', '-Tutf8', '-rLL=100n', '-P-cbou'], { input: source, encoding: 'utf8' })
}

describe('the manual page', () => {
  it('09.1 is read without a warning', () => {
    const { status, stderr } = spawnSync('/usr/bin/groff', ['-man', '-ww', '-z', '-Tutf8'], {
      input: page,
      encoding: 'utf8',
    })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })

  it('09.1 shows every command with its examples, to be typed as they are', async () => {
    const { pages, topics } = await readReference()
    const shown = show(page)
    for (const { name, examples } of leavesOf(pages)) {
      expect(shown).toContain(`\n   svc ${name} `)
      for (const example of examples) expect(shown).toContain(`\n           ${example}\n`)
    }
    for (const { title, manualTitle = title } of topics.slice(1))
      expect(shown).toContain(`\n${manualTitle.toUpperCase()}\n`)
  })

  it('09.1 shows any text as it is written', () => {
    const odd = String.raw`.so /etc/passwd 'quoted' "double" back\slash \fBbold \n(.z ~/x ^y --option a-b`
    const nasty: CommandPage = {
      name: `odd "name" \\e`,
      summary: '',
      otherNames: [],
      group: 'Odd',
      description: `'starts with a quote. ${odd}`,
      usage: `svc odd "name" \\e .x`,
      arguments: [{ term: '.argument', description: odd }],
      options: [{ term: "-'o, --odd <\\x>", description: '.' }],
      notes: [odd, "'", '\\', '…ends'],
      examples: [`.TH ${odd}`, "'br", '\\&', '`tick`'],
      samples: [{ name: '.name', text: `.a\n\n'b\n\\c` }],
      children: [],
    }
    const source = renderManual({ pages: [nasty], commonOptions: [], globalOptions: [], topics: [] })
    const { stderr } = spawnSync('/usr/bin/groff', ['-man', '-ww', '-z', '-Tutf8'], { input: source, encoding: 'utf8' })
    expect(stderr).toBe('')
    const shown = show(source).replace(/\s+/g, ' ')
    for (const text of [odd, nasty.usage, "-'o, --odd <\\x>", `.TH ${odd} 'br \\& \`tick\``, ".a 'b \\c", '…ends']) {
      expect(shown).toContain(text)
    }
  })
})
