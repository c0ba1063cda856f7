/** The pack of a crontab: for each job an action with its script, and a rule with its timer. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isObject } from '../../../lib/schema/index.ts'
import { readYamlDocument } from '../../../lib/text/index.ts'
import { CliFailure } from '../../failures.ts'
import { printable } from '../../output/print.ts'
import { toYaml } from '../../output/yaml.ts'
import { manifestText } from '../pack.ts'
import { shownPath, type PlannedFile } from '../write-files.ts'
import { findAgain, readContent, readJobs, type ExistingJob } from './existing.ts'
import { nameJobs } from './job-names.ts'
import type { Crontab, CrontabJob } from './read.ts'
import { MARK, scriptOf } from './script.ts'

export interface ImportOptions {
  pack: string
  /** Of the pack, absolute. */
  folder: string
  /** Where the crontab is, for people and to recognize it again. */
  source: string
  /** Account of the jobs whose line has none. */
  user: string | undefined
  /** Whether all rules are enabled; otherwise new ones are not, and others stay as their files say. */
  enables: boolean
  /** Whether all jobs of the pack may go. */
  replaces: boolean
}

export interface PlannedJob {
  job: CrontabJob
  name: string
  user: string | undefined
  enabled: boolean
}

export interface ImportPlan {
  jobs: PlannedJob[]
  created: PlannedFile[]
  changed: PlannedFile[]
  /** Absolute paths. */
  removed: string[]
  /** Jobs whose lines are gone. */
  removedJobs: ExistingJob[]
  /** How many files stay as they are. */
  unchanged: number
  /** Absolute paths of files that somebody has made his own: they stay, whatever the crontab says. */
  kept: string[]
}

/** @throws CliFailure when the pack is from something else, or all its jobs would be removed */
export async function planImport(crontab: Crontab, options: ImportOptions): Promise<ImportPlan> {
  const { pack, folder, source, user, enables } = options
  const content = await readContent(folder)
  const { owned: existing, others } = content
  // In a folder that is no pack yet, what is in the way is not of an earlier import.
  const isAgain = await checkSource(folder, pack, source)
  const isKept = (path: string): boolean => isAgain && others.has(path)
  const before = readJobs(folder, content)
  const room = createRoom()
  const scripts = crontab.jobs.map((job) => room.take(scriptOf(job, source, job.user ?? user)))
  const found = findAgain(crontab.jobs, scripts, before)
  const removedJobs = before.filter((each) => !found.includes(each))
  if (before.length > 0 && removedJobs.length === before.length && !options.replaces) refuseRemoval(before, options)
  const names = nameJobs(
    crontab.jobs.map(({ command }) => command),
    found.map((each) => each?.name),
    // The server may have enabled a rule of such a name: another job must not get it.
    removedJobs.map(({ name }) => name),
  )
  const jobs = crontab.jobs.map((job, index): PlannedJob => ({
    job,
    name: names[index] ?? '',
    user: job.user ?? user,
    enabled: enables || found[index]?.enabled === true,
  }))
  const files: PlannedFile[] = [
    ...jobs.flatMap(({ job, name, user: account }, index) => [
      { path: join(folder, 'actions', `${name}.sh`), text: scripts[index] ?? '', isExecutable: true },
      { path: join(folder, 'actions', `${name}.yaml`), text: actionText(job, name, source, account) },
    ]),
    ...jobs.map((planned) => ({
      path: join(folder, 'rules', `${planned.name}.yaml`),
      text: ruleText(planned, pack, source),
    })),
    { path: join(folder, 'README.md'), text: readmeText(crontab, jobs, options) },
    // Without it, a server takes the folder for no pack.
    {
      path: join(folder, 'pack.yaml'),
      text: `# ${MARK}\n${manifestText(pack, `Jobs of the crontab ${source}.`)}${toYaml({ crontab: source })}`,
    },
  ]
  const planned = new Set(files.map(({ path }) => path))
  return {
    jobs,
    created: files.filter(({ path }) => !existing.has(path) && !isKept(path)),
    changed: files
      .filter(({ path, text }) => existing.has(path) && existing.get(path) !== text)
      .map((file) => ({ ...file, replaces: true })),
    removed: [...existing.keys()].filter((path) => !planned.has(path)),
    removedJobs,
    unchanged: files.filter(({ path, text }) => existing.get(path) === text).length,
    kept: files.map(({ path }) => path).filter(isKept),
  }
}

/** Each script repeats the variables of the crontab. */
const MAX_SCRIPT_CHARS = 33_554_432

/** Counts the text of all scripts. */
function createRoom(): { take(text: string): string } {
  let left = MAX_SCRIPT_CHARS
  return {
    take(text) {
      left -= text.length
      if (left < 0) {
        throw new CliFailure(
          `The scripts would have more than ${MAX_SCRIPT_CHARS} characters, because each repeats the variables of the crontab. Divide the crontab.`,
        )
      }
      return text
    },
  }
}

/**
 * Whether the pack is of this crontab; false: there is none.
 *
 * @throws CliFailure when it is from something else: its jobs would be removed
 */
async function checkSource(folder: string, pack: string, source: string): Promise<boolean> {
  const text = await readFile(join(folder, 'pack.yaml'), 'utf8').catch(() => undefined)
  if (text === undefined) return false
  const read = readYamlDocument(text)
  const before = 'value' in read && isObject(read.value) ? read.value['crontab'] : undefined
  if (before === source) return true
  throw new CliFailure(
    typeof before === 'string'
      ? `The pack "${pack}" in ${shownPath(folder)} has the jobs of ${before}, not of ${source}. Choose another name with --pack.`
      : `The pack "${pack}" in ${shownPath(folder)} is not from a crontab. Choose another name with --pack.`,
  )
}

const MAX_NAMED = 10

/** @throws CliFailure another crontab must not take the place of this one unnoticed */
function refuseRemoval(before: readonly ExistingJob[], { pack, folder, source }: ImportOptions): never {
  const named = before.slice(0, MAX_NAMED).map(({ name, line }) => `  ${pack}.${name}: ${printable(line)}\n`)
  const more = before.length > MAX_NAMED ? `  and ${before.length - MAX_NAMED} more\n` : ''
  throw new CliFailure(
    `None of the jobs in the pack "${pack}" in ${shownPath(folder)} is in ${printable(source)}, so nothing was written. These would be removed:\n${named.join('')}${more}If they may go, use --replace. If this is another crontab, choose another name with --pack.`,
  )
}

const descriptionOf = ({ description }: CrontabJob, source: string): string =>
  description ?? `A job of the crontab ${source}.`

function actionText(job: CrontabJob, name: string, source: string, user: string | undefined): string {
  return `# ${MARK}\n${toYaml({
    name,
    description: descriptionOf(job, source),
    runner_type: 'local-shell-script',
    entry_point: `${name}.sh`,
    parameters: {
      // As in cron, a job may take as long as it likes.
      timeout: { default: 0 },
      // Who may run the job must not choose what root runs before it.
      ...(user === undefined
        ? {}
        : { sudo: { default: true, immutable: true }, env: { default: {}, immutable: true } }),
    },
  })}`
}

function ruleText({ job, name, enabled }: PlannedJob, pack: string, source: string): string {
  const { cron, timeZone, jitterSeconds, mailTo = [] } = job
  return `# ${MARK}\n${toYaml({
    name,
    description: descriptionOf(job, source),
    enabled,
    trigger: {
      type: 'core.svc.CronTimer',
      parameters: {
        cron,
        timezone: timeZone,
        ...(jitterSeconds === 0 ? {} : { jitter_seconds: jitterSeconds }),
      },
    },
    action: { ref: `${pack}.${name}` },
    // cron mails whatever a command prints; here a mail means that somebody has to act.
    ...(mailTo.length === 0 ? {} : { notify: [{ use: 'mail', to: mailTo, on: ['failed', 'timeout'] }] }),
  })}`
}

function readmeText(crontab: Crontab, jobs: readonly PlannedJob[], { pack, source }: ImportOptions): string {
  const isMailed = jobs.some(({ job }) => (job.mailTo ?? []).length > 0)
  const isOwnersMail = jobs.some(({ job }) => job.mailTo === undefined)
  const accounts = new Set(jobs.flatMap((planned) => planned.user ?? []))
  const rows = jobs.map(({ job, name }) => `| \`${pack}.${name}\` | \`${job.cron}\` | ${job.timeZone} |\n`)
  const left = crontab.left.map(({ text, message }) => `- \`${text.replaceAll('`', "'")}\`: ${message}.\n`)
  return `<!-- ${MARK} -->

# Jobs of the crontab ${source}

| Rule and action | When | Time zone |
|---|---|---|
${rows.join('')}
\`svc rule enable <rule>\` starts a job, \`svc run <action>\` runs it now, \`svc execution list --action <action>\`
shows its runs. Remove a line from the crontab before you enable its rule, else both run it. Import the
file again after a change: lines that are new, changed or gone are new, changed or gone here.

## What differs from cron

- cron mails whatever a command prints. svc keeps the output of each run${
    isMailed
      ? ', and mails the recipients of MAILTO when a\n  run fails: an administrator sets up the destination `mail`, and `svc notify test mail` tries it'
      : ''
  }.
${isOwnersMail ? '- Without MAILTO, cron mails the owner of the crontab. These jobs notify nobody.\n' : ''}${
    accounts.size === 0
      ? `- Commands run as the account of the server's commands (\`system_user.user\`), in its home folder.\n`
      : `- The jobs of ${[...accounts].join(', ')} change to their account by sudo and runuser: the server must run as root, or
  its account needs sudo without a password.\n`
  }${
    jobs.some((planned) => planned.user === undefined)
      ? `- Commands get the variables of the crontab after those of the server. cron gives them a PATH of
  \`/usr/bin:/bin\` only.\n`
      : `- As from cron, commands get the variables of the crontab and none of the server. Their PATH is
  \`/usr/sbin:/usr/bin:/sbin:/bin\` unless the crontab sets one. cron has \`/usr/bin:/bin\`.\n`
  }- A job that still runs at its next time starts once more, as in cron. \`overlap: skip\` in the \`action\` of
  its rule prevents it.
- A job that was due while the server was off runs once at the next start, unless
  \`timersengine.missed\` is \`skip\`. cron misses it.
${left.length === 0 ? '' : `\n## Lines that are no jobs here\n\n${left.join('')}`}`
}
