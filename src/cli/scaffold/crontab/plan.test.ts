import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import { createRandom, seedOfRun, type Random } from '../../../../tests/helpers/random.ts'
import { fullOnly } from '../../../../tests/helpers/tiers.ts'
import { planImport, type ImportPlan } from './plan.ts'
import { readCrontab } from './read.ts'

let folder: TemporaryFolder
beforeEach(() => {
  folder = makeFolder()
})
afterEach(() => folder.remove())

const plan = (text: string, flags: { enables?: boolean; replaces?: boolean } = {}): Promise<ImportPlan> =>
  planImport(readCrontab(text, { isSystem: false, timeZone: 'UTC' }), {
    pack: 'jobs',
    folder: folder.path,
    source: 'a.cron',
    user: undefined,
    enables: false,
    replaces: false,
    ...flags,
  })

/** @returns `<schedule> <command>` → name and whether it is enabled */
async function importText(text: string, flags?: Parameters<typeof plan>[1]): Promise<Map<string, [string, boolean]>> {
  const { jobs, created, changed, removed } = await plan(text, flags)
  for (const { path, text: content } of [...created, ...changed]) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
  }
  for (const path of removed) rmSync(path)
  return new Map(jobs.map(({ job, name, enabled }) => [`${job.cron} ${job.command}`, [name, enabled]]))
}

describe('a job stays itself', () => {
  test('when a line is added whose command would have the same name', async () => {
    await importText('0 3 * * * /opt/backup.sh\n', { enables: true })
    const jobs = await importText('0 3 * * * /opt/backup.sh\n0 4 * * * /srv/backup.sh\n')
    expect(jobs.get('0 3 * * * /opt/backup.sh')).toEqual(['backup', true])
    expect(jobs.get('0 4 * * * /srv/backup.sh')).toEqual([expect.stringMatching(/^backup_[0-9a-f]{6}$/), false])
  })

  test('when a line with the same command is put above, or it gets another time', async () => {
    await importText('0 3 * * * run.sh\n', { enables: true })
    expect([...(await importText('0 1 * * * run.sh\n0 3 * * * run.sh\n'))]).toEqual([
      ['0 1 * * * run.sh', ['run_2', false]],
      ['0 3 * * * run.sh', ['run', true]],
    ])
    expect([...(await importText('0 1 * * * run.sh\n0 5 * * * run.sh\n'))]).toEqual([
      ['0 1 * * * run.sh', ['run_2', false]],
      ['0 5 * * * run.sh', ['run', true]],
    ])
  })

  test('and its name goes to no other command', async () => {
    await importText('0 3 * * * /opt/run.sh\n0 4 * * * other\n', { enables: true })
    const jobs = await importText('0 3 * * * /srv/run.sh\n0 4 * * * other\n')
    expect([...jobs.values()]).toEqual([
      ['run_2', false],
      ['other', true],
    ])
  })

  test('with its input, and in another time zone', async () => {
    await importText('@daily cat%one\n@daily cat%two\n', { enables: true })
    const before = await importText('@daily cat%two\n@daily cat%one\n')
    expect(before.size).toBe(1)
    const { jobs } = await plan('CRON_TZ=Europe/Berlin\n@daily cat%one\n@daily cat%two\n@daily cat%three\n')
    expect(jobs.map(({ name, enabled }) => [name, enabled])).toEqual([
      ['cat', true],
      ['cat_2', true],
      ['cat_3', false],
    ])
  })
})

interface Line {
  cron: string
  command: string
}

const crons = ['0 1 * * *', '0 2 * * *', '0 3 * * 1', '@daily', '*/5 * * * *'] as const
const commands = ['/opt/backup.sh', '/srv/backup.sh', 'run.sh', 'run.sh --fast', 'cat%a', 'cat%b', '2>&1'] as const
const textOf = ({ cron, command }: Line): string => `${cron} ${command}`

/** One edit as a person makes it. @returns the lines that it did not touch, and what it did to others */
function edit(lines: Line[], random: Random): { kept: Line[]; moved?: [from: Line, to: Line]; fresh?: Line } {
  const all = crons.flatMap((cron) => commands.map((command) => ({ cron, command })))
  const free = all.filter((each) => !lines.some((line) => textOf(line) === textOf(each)))
  const line = random.pick(lines as [Line, ...Line[]])
  const others = lines.filter((each) => each !== line)
  const at = random.below(lines.length + 1)
  const put = (fresh: Line, into: Line[]): void => void lines.splice(0, lines.length, ...into.toSpliced(at, 0, fresh))
  const choose = (choices: Line[]): Line | undefined => choices[random.below(choices.length)]
  switch (random.pick(['add', 'remove', 'reorder', 'schedule', 'command'])) {
    case 'add': {
      const fresh = choose(free)
      if (fresh === undefined || lines.length > 12) break
      const kept = [...lines]
      put(fresh, kept)
      return { kept, fresh }
    }
    case 'remove':
      if (lines.length < 2) break
      lines.splice(0, lines.length, ...others)
      return { kept: others }
    case 'schedule': {
      const to = choose(free.filter(({ command }) => command === line.command))
      if (to === undefined) break
      put(to, others)
      return { kept: others, moved: [line, to] }
    }
    case 'command': {
      const fresh = choose(free.filter(({ cron, command }) => cron === line.cron && command !== line.command))
      if (fresh === undefined || others.length === 0) break
      put(fresh, others)
      return { kept: others, fresh }
    }
  }
  lines.reverse()
  return { kept: [...lines] }
}

const seed = seedOfRun()

/** What edits have changed that they must not. */
async function followEdits(count: number): Promise<string[]> {
  const problems: string[] = []
  const random = createRandom(seed)
  const lines: Line[] = [{ cron: '@daily', command: 'run.sh' }]
  const importLines = async (): Promise<Map<string, [string, boolean]>> => {
    const { jobs } = await plan(lines.map((line) => `${textOf(line)}\n`).join(''))
    await importText(lines.map((line) => `${textOf(line)}\n`).join(''))
    return new Map(
      jobs.map(({ name, enabled }, index) => [textOf(lines[index] ?? { cron: '', command: '' }), [name, enabled]]),
    )
  }
  let before = await importLines()
  for (let round = 0; round < count; round += 1) {
    for (const [line, [name]] of before) {
      if (!random.once(4)) continue
      const path = join(folder.path, 'rules', `${name}.yaml`)
      writeFileSync(path, readFileSync(path, 'utf8').replace(/^enabled: .*$/m, 'enabled: true'))
      before.set(line, [name, true])
    }
    const { kept, moved, fresh } = edit(lines, random)
    const after = await importLines()
    // Each line that was there before, by what it was then.
    const same = [...kept.map((line): [Line, Line] => [line, line]), ...(moved === undefined ? [] : [moved])]
    for (const [was, is] of same) {
      const [then, now] = [before.get(textOf(was)), after.get(textOf(is))]
      if (String(then) !== String(now)) problems.push(`${textOf(is)}: ${String(then)} is ${String(now)}`)
    }
    const names = new Set([...before.values()].map(([name]) => name))
    const [name = '', enabled] = (fresh && after.get(textOf(fresh))) ?? []
    if (enabled === true || names.has(name)) problems.push(`${name} is no new job`)
    if (new Set([...after.values()].map(([each]) => each)).size !== lines.length) problems.push('a name is there twice')
    before = after
  }
  return problems
}

describe(`any edits of a crontab keep names, and what is enabled, of other lines (seed ${seed})`, () => {
  test('a few', async () => {
    expect(await followEdits(10)).toEqual([])
  })
  fullOnly(test)('many', async () => {
    expect(await followEdits(100)).toEqual([])
  })
})

describe('an import that leaves none of the jobs', () => {
  test('is refused and names them, unless they may go', async () => {
    await importText('0 3 * * * one\n0 4 * * * two\n', { enables: true })
    await expect(plan('0 3 * * * other\n')).rejects.toThrow(
      /None of the jobs in the pack "jobs" .* is in a\.cron, .*\n {2}jobs\.one: 0 3 \* \* \* one\n {2}jobs\.two.*\n.*--replace/,
    )
    const { removedJobs, jobs } = await plan('0 3 * * * other\n', { replaces: true })
    expect([removedJobs.map(({ name }) => name), jobs.map(({ name }) => name)]).toEqual([['one', 'two'], ['other']])
  })

  test('is another one when a command stays', async () => {
    await importText('0 3 * * * one\n0 4 * * * two\n')
    expect((await plan('0 5 * * * one\n')).removedJobs.map(({ name, line }) => [name, line])).toEqual([
      ['two', '0 4 * * * two'],
    ])
  })
})
