/** What an earlier import left in the folder of a pack, and which of its jobs are those of a crontab. */
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { describeFileError, readBoundedFile } from '../../../lib/files/index.ts'
import { writeJson } from '../../../lib/json/index.ts'
import { hasCode } from '../../../lib/process/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import { readYamlDocument } from '../../../lib/text/index.ts'
import { CliFailure } from '../../failures.ts'
import { shownPath } from '../write-files.ts'
import { nameJobs } from './job-names.ts'
import { readCrontab, type CrontabJob } from './read.ts'
import { lineOfScript, MARK } from './script.ts'

/** A job of an earlier import. */
export interface ExistingJob {
  name: string
  enabled: boolean
  cron: string
  timeZone: string
  /** As the crontab had it; empty: the script does not tell. */
  line: string
  script: string
}

/** More is not read of a file in the pack: an import writes none that is larger. */
const MAX_OWNED_BYTES = 33_554_432

/** Absolute path → text. */
export interface ExistingContent {
  /** What an import wrote. */
  owned: ReadonlyMap<string, string>
  /** Everything else, such as files, links and folders; the text is empty if it is none of the files that an import writes. */
  others: ReadonlyMap<string, string>
}

/** What is in the folders of the pack that an import writes to. @throws CliFailure */
export async function readContent(folder: string): Promise<ExistingContent> {
  const owned = new Map<string, string>()
  const others = new Map<string, string>()
  for (const part of ['.', 'actions', 'rules']) {
    const entries = await readdir(join(folder, part), { withFileTypes: true }).catch((error: unknown) => {
      if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
      throw new CliFailure(`Cannot read ${shownPath(join(folder, part))}: ${describeFileError(folder, error)}`)
    })
    for (const entry of entries) {
      const path = join(folder, part, entry.name)
      const isText = entry.isFile() && /\.(?:ya?ml|sh|md)$/.test(entry.name)
      const file = isText ? await readBoundedFile(path, MAX_OWNED_BYTES) : undefined
      const text = file !== undefined && 'bytes' in file ? file.bytes.toString('utf8') : ''
      const isOwned = text.split('\n', 2).some((line) => line.includes(MARK))
      ;(isOwned ? owned : others).set(path, text)
    }
  }
  return { owned, others }
}

/** The jobs with a rule of an import, also one that somebody has made his own since, in the order of their names. */
export function readJobs(folder: string, { owned, others }: ExistingContent): ExistingJob[] {
  const jobs: ExistingJob[] = []
  for (const [path, text] of [...owned, ...others]) {
    const name = basename(path, '.yaml')
    if (path !== join(folder, 'rules', `${name}.yaml`)) continue
    // Somebody may have made the script his own: it still tells which job it was.
    const scriptPath = join(folder, 'actions', `${name}.sh`)
    const script = owned.get(scriptPath) ?? others.get(scriptPath) ?? ''
    // Otherwise a rule of his own, of no job.
    if (!owned.has(path) && lineOfScript(script) === '') continue
    const read = readYamlDocument(text)
    const rule = 'value' in read && isObject(read.value) ? read.value : {}
    const trigger = isObject(rule['trigger']) ? rule['trigger'] : {}
    const parameters = isObject(trigger['parameters']) ? trigger['parameters'] : {}
    jobs.push({
      name,
      enabled: rule['enabled'] === true,
      cron: String(parameters['cron']),
      timeZone: String(parameters['timezone']),
      line: lineOfScript(script),
      script,
    })
  }
  return jobs.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** What makes a job the same one, from all of it to its command alone. */
interface Identity {
  script: string
  user: string
  command: string
  input: string
  cron: string
  timeZone: string
}

const stages: readonly (readonly (keyof Identity)[])[] = [
  ['script', 'cron', 'timeZone'],
  ['user', 'command', 'input', 'cron', 'timeZone'],
  ['user', 'command', 'input', 'cron'],
  ['command', 'input', 'cron'],
  ['user', 'command', 'input'],
  ['command', 'input'],
]

/**
 * Finds the jobs again: first those with the same command and schedule, then those with the same command.
 *
 * @param scripts of the jobs, in their order
 * @returns for each job the one that it was; undefined: it is new
 */
export function findAgain(
  jobs: readonly CrontabJob[],
  scripts: readonly string[],
  existing: readonly ExistingJob[],
): (ExistingJob | undefined)[] {
  const isSystem = jobs.some(({ user }) => user !== undefined)
  const wanted = jobs.map((job, index) => identityOf(job, scripts[index] ?? ''))
  const left = new Map(existing.map((each) => [each, identityBefore(each, isSystem)]))
  const found: (ExistingJob | undefined)[] = jobs.map(() => undefined)
  for (const parts of stages) {
    const keyOf = (identity: Identity): string => writeJson(parts.map((part) => identity[part]))
    const byKey = Map.groupBy(left.keys(), (each) => keyOf(left.get(each) ?? noIdentity))
    for (const [index, identity] of wanted.entries()) {
      if (found[index] !== undefined || identity.command === '') continue
      const before = byKey.get(keyOf(identity))?.shift()
      if (before === undefined) continue
      found[index] = before
      left.delete(before)
    }
  }
  // Of a script that somebody wrote anew only the name tells.
  const names = nameJobs(jobs.map(({ command }) => command))
  for (const before of left.keys()) {
    const index = names.indexOf(before.name)
    if (before.line === '' && index !== -1) found[index] ??= before
  }
  return found
}

const noIdentity: Identity = { script: '', user: '', command: '', input: '', cron: '', timeZone: '' }

const identityOf = ({ user = '', command, input = '', cron, timeZone }: CrontabJob, script: string): Identity => ({
  script,
  user,
  command,
  input,
  cron,
  timeZone,
})

function identityBefore({ line, cron, timeZone, script }: ExistingJob, isSystem: boolean): Identity {
  const [job] = readCrontab(line, { isSystem, timeZone }).jobs
  return job === undefined ? { ...noIdentity, script, cron, timeZone } : { ...identityOf(job, script), cron, timeZone }
}
