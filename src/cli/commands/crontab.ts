/** `svc crontab import`: jobs of cron become a pack. */
import { basename, join } from 'node:path'
import { Option } from 'commander'
import { instantOf, isTimeZone, machineTimeZone, nextWallTime, offsetAt } from '../../lib/calendar/index.ts'
import { quote } from '../../lib/process/index.ts'
import { CliCommand } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { readFileBytes } from '../input/text-file.ts'
import { readWholeInput } from '../input/whole-input.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { printable, type Json } from '../output/print.ts'
import { planImport, type ImportPlan, type PlannedJob } from '../scaffold/crontab/plan.ts'
import { readCrontab, type Crontab, type CrontabJob, type CrontabRemark } from '../scaffold/crontab/read.ts'
import { accountName } from '../scaffold/pack.ts'
import { checkPackName, packNameFrom } from '../scaffold/names.ts'
import { findPacksFolder, placeNote } from '../scaffold/packs-folder.ts'
import { nextText, type NextStep } from '../scaffold/report.ts'
import { pathOf, refuseObstacles, shownPath, writeFiles } from '../scaffold/write-files.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { installStep } from './pack-create.ts'

interface ImportFlags extends CommonFlags {
  pack?: string
  path?: string
  system?: boolean
  user?: string
  timezone?: string
  enable?: boolean
  replace?: boolean
  dryRun?: boolean
}

const MAX_CRONTAB_BYTES = 1_048_576
const SHOWN_RUNS = 2

export function createCrontabCommand(context: CommandContext): CliCommand {
  const imports = addCommonOptions(new CliCommand('import'))
    .description('Convert a crontab to a pack: an action and a timer rule for each line. No server is needed.')
    .argument('<file>', 'crontab, or - to read standard input')
    .option('--dry-run', 'write nothing; show the jobs, their next runs and the files')
    .option('--enable', 'enable the rules; default: new rules are disabled, others stay as they are')
    .option('--pack <name>', 'name of the pack; default: made from the name of the file, or of the account')
    .option('--path <folder>', 'folder to create the folder of the pack in')
    .option('--replace', 'remove the jobs of the pack even if the crontab has none of them')
    .addOption(
      new Option(
        '--system',
        'the lines have a column with the user; default for /etc/crontab and files in /etc/cron.d',
      ).conflicts('user'),
    )
    .option('--user <name>', 'account that runs the jobs; default: that of the commands of the server')
    .option('--timezone <zone>', 'time zone of lines without CRON_TZ; default: that of this machine')
    .completions({ '--pack': [], '--timezone': [], '--user': [] })
    .notes(
      'Import the file again after a change: lines that are new, changed or gone are new, changed or gone in the pack. A job with the same command and time, else with the same command, keeps its name and stays enabled. Files of your own in the pack stay. The pack of standard input has the name of the account.',
      'svc understands variables, CRON_TZ, SHELL, MAILTO, RANDOM_DELAY, "%" and comments above a line, which become its description. It does not convert @reboot lines. If any line is invalid, the command names all of them and writes nothing.',
      placeNote,
    )
    .examples(
      'svc crontab import /etc/crontab --dry-run',
      'crontab -l | svc crontab import - --enable',
      'svc crontab import alice.cron --user alice --timezone Europe/Berlin',
    )
    .action((file: string, flags: ImportFlags) =>
      withSession(context, flags, (session) => importCrontab(session, file, flags), { withoutLogin: true }),
    )
  return new CliCommand('crontab').addCommand(imports)
}

async function importCrontab(session: Session, file: string, flags: ImportFlags): Promise<number> {
  const { user, timezone = machineTimeZone(), dryRun = false, enable = false, replace = false } = flags
  if (!isTimeZone(timezone)) {
    throw new CliFailure(
      `--timezone ${printable(timezone)}: this is no time zone. Use a name such as Europe/Berlin or UTC.`,
      exitCodes.usage,
    )
  }
  if (user !== undefined && !/^[A-Za-z_][A-Za-z0-9_.-]{0,63}\$?$/.test(user)) {
    throw new CliFailure(`--user ${printable(user)}: this cannot be the name of a user.`, exitCodes.usage)
  }
  const isInput = file === '-'
  const account = user ?? accountName()
  // It stands in comments: a line end in a name of a file must not end them.
  const source = (isInput ? `standard input (${account})` : pathOf(file)).replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, '?')
  const isSystem = flags.system ?? /^\/etc\/(?:crontab|cron\.d\/[^/]+)$/.test(source)
  const text = isInput
    ? decode(await readWholeInput(session, MAX_CRONTAB_BYTES), 'Standard input')
    : decode(await readFileBytes(file, MAX_CRONTAB_BYTES), source)
  const crontab = readCrontab(text, { isSystem, timeZone: timezone })
  refuseProblems(crontab, source)

  const { path: packs, isServed } = await findPacksFolder(flags.path)
  const pack = flags.pack === undefined ? packNameOf(isInput ? account : source, packs) : checkPackName(flags.pack)
  const folder = join(packs, pack)
  const plan = await planImport(crontab, { pack, folder, source, user, enables: enable, replaces: replace })
  const written = [...plan.created, ...plan.changed]
  if (dryRun) await refuseObstacles(written)
  else await writeFiles(inOrder(written, folder), plan.removed)

  const next = dryRun ? [] : nextSteps({ pack, folder, file, isServed, source, isSystem, plan })
  if (session.form === 'human') await session.print(describe(crontab, plan, { pack, folder, dryRun, next }))
  else await session.printMachine(toRecord(crontab, plan, { pack, folder, dryRun, next }))
  return exitCodes.ok
}

function decode(bytes: Buffer, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new CliFailure(`${printable(name)} is not UTF-8.`, exitCodes.usage)
  }
}

/** @throws CliFailure that names every line that cannot be converted */
function refuseProblems({ jobs, left, problems }: Crontab, source: string): void {
  if (problems.length > 0) {
    const count = problems.length === 1 ? '1 line is invalid' : `${problems.length} lines are invalid`
    throw new CliFailure(
      `${printable(source)}: ${count}, so nothing was written.\n${problems.map(remarkText).join('\n')}`,
    )
  }
  if (jobs.length > 0) return
  throw new CliFailure([`${printable(source)} has no line that can be converted.`, ...left.map(remarkText)].join('\n'))
}

const MAX_SHOWN_CHARS = 100

function remarkText({ line, text, message }: CrontabRemark): string {
  const short = text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text
  return `  line ${line}: ${printable(message)}\n    ${printable(short)}`
}

/** The manifest is last. */
function inOrder(files: readonly ImportPlan['created'][number][], folder: string): ImportPlan['created'] {
  const manifest = join(folder, 'pack.yaml')
  return files.toSorted((a, b) => Number(a.path === manifest) - Number(b.path === manifest))
}

/** @param packs folder that gets the pack */
function packNameOf(path: string, packs: string): string {
  const name = packNameFrom(basename(path).replace(/\.(?:txt|cron|crontab|tab)$/, ''), 'crontab')
  const whole = name.startsWith('cron') ? name : `crontab_${name}`
  // The file itself is where the folder would be.
  return path === join(packs, whole) ? `${whole}_jobs` : whole
}

/** Wall times in the zone of the job, in seconds. */
function nextRuns({ schedule, timeZone }: CrontabJob): number[] {
  const now = Math.floor(Date.now() / 1000)
  const runs: number[] = []
  let wall = now + offsetAt(timeZone, now)
  while (runs.length < SHOWN_RUNS) {
    const next = nextWallTime(schedule, wall + 1)
    if (next === undefined) break
    runs.push(next)
    wall = next
  }
  return runs
}

interface Outcome {
  pack: string
  folder: string
  dryRun: boolean
  next: readonly NextStep[]
}

function describe(crontab: Crontab, plan: ImportPlan, { pack, folder, dryRun, next }: Outcome): string {
  const shown = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ')
  const jobs = plan.jobs.map(({ job, name, user, enabled }) => {
    const { jitterSeconds, mailTo = [] } = job
    const facts = [
      ...(user === undefined ? [] : [`as ${user}`]),
      ...(jitterSeconds === 0 ? [] : [`up to ${jitterSeconds / 60} min later`]),
      ...(mailTo.length === 0 ? [] : [`mails ${mailTo.join(', ')} when it fails`]),
    ]
    const about = [`${pack}.${name}`, enabled ? 'enabled' : 'disabled', ...facts].join(', ')
    return `line ${job.line}: ${printable(job.text)}\n  ${printable(about)}\n  next: ${nextRuns(job).map(shown).join(', ')} ${job.timeZone}\n`
  })
  const remarks = (title: string, all: readonly CrontabRemark[]): string[] =>
    all.length === 0 ? [] : [`\n${title}\n${all.map(remarkText).join('\n')}\n`]
  const gone = plan.removedJobs.map(({ name, line }) => `  ${pack}.${name}: ${printable(line)}\n`)
  const files = [
    ...(dryRun ? plannedFiles(plan) : [`${countsOf(plan)} folder ${shownPath(folder)}\n`]),
    ...plan.kept.map((path) => `Left as you made it: ${shownPath(path)}\n`),
  ]
  return [
    ...jobs,
    ...remarks('Not converted:', crontab.left),
    ...remarks('Works otherwise:', crontab.notes),
    ...(gone.length === 0
      ? []
      : [`\nNo longer in the crontab, ${dryRun ? 'would be removed' : 'removed'}:\n`, ...gone]),
    '\n',
    ...files,
    ...(next.length === 0 ? [] : ['\n', nextText(next)]),
  ].join('')
}

function plannedFiles({ created, changed, removed, unchanged }: ImportPlan): string[] {
  return [
    ...created.map(({ path }) => `Would create ${shownPath(path)}\n`),
    ...changed.map(({ path }) => `Would change ${shownPath(path)}\n`),
    ...removed.map((path) => `Would remove ${shownPath(path)}\n`),
    ...(unchanged === 0 ? [] : [`Would leave ${unchanged} files as they are\n`]),
    'Nothing was written. -j shows the content of the files.\n',
  ]
}

function countsOf({ created, changed, removed, unchanged }: ImportPlan): string {
  const counts = [
    ...(created.length === 0 ? [] : [`created ${created.length}`]),
    ...(changed.length === 0 ? [] : [`changed ${changed.length}`]),
    ...(removed.length === 0 ? [] : [`removed ${removed.length}`]),
    ...(unchanged === 0 ? [] : [`left ${unchanged} as they are`]),
  ]
  return `Files: ${counts.join(', ')};`
}

function toRecord(crontab: Crontab, plan: ImportPlan, { pack, folder, dryRun, next }: Outcome): Json {
  const jobRecord = ({ job, name, user, enabled }: PlannedJob): Json => ({
    line: job.line,
    rule: `${pack}.${name}`,
    action: `${pack}.${name}`,
    cron: job.cron,
    timezone: job.timeZone,
    command: job.command,
    enabled,
    user: user ?? null,
    mail_to: job.mailTo ?? null,
    jitter_seconds: job.jitterSeconds,
    next_runs: nextRuns(job).map((wall) => new Date(instantOf(job.timeZone, wall * 1_000_000) / 1000).toISOString()),
  })
  const fileRecord = ({ path, text }: { path: string; text: string }): Json => ({ path, text })
  return {
    pack,
    folder,
    dry_run: dryRun,
    jobs: plan.jobs.map(jobRecord),
    not_converted: crontab.left,
    notes: crontab.notes,
    created: plan.created.map(fileRecord),
    changed: plan.changed.map(fileRecord),
    removed: plan.removed,
    removed_jobs: plan.removedJobs.map(({ name }) => `${pack}.${name}`),
    unchanged: plan.unchanged,
    kept: plan.kept,
    next: next.map(({ command }) => command),
  }
}

function nextSteps(facts: {
  pack: string
  folder: string
  file: string
  isServed: boolean
  source: string
  isSystem: boolean
  plan: ImportPlan
}): NextStep[] {
  const { pack, folder, file, isServed, source, isSystem, plan } = facts
  const edit = isSystem ? `sudoedit ${quote(source)}` : 'crontab -e'
  const disabled = plan.jobs.filter(({ enabled }) => !enabled).map(({ name }) => `${pack}.${name}`)
  const enable =
    disabled.length <= 3 ? `svc rule enable ${disabled.join(' ')}` : `svc crontab import ${quote(file)} --enable`
  return [
    ...(disabled.length === 0 ? [{ command: edit, about: 'remove the old lines, else both run them' }] : []),
    installStep(pack, folder, isServed),
    ...(plan.jobs.some(({ job }) => (job.mailTo ?? []).length > 0)
      ? [{ command: 'svc notify test mail', about: 'tries the destination "mail": see docs/notifications.md' }]
      : []),
    ...(disabled.length === 0
      ? []
      : [
          { command: edit, about: 'remove the old lines, else both run them' },
          {
            command: enable,
            about: disabled.length <= 3 ? 'starts the jobs' : 'enables the rules; then register the pack again',
          },
        ]),
  ]
}
