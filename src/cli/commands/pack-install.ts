/** `svc pack install`, `uninstall` and `register`: installs, removes and registers packs (contract 09, 9.3). */
import { existsSync } from 'node:fs'
import { absolutePath, pathToOpen } from '../cli-process.ts'
import { CliCommand } from '../command.ts'
import { recordIn, textOrEmpty, toList, toObject } from '../connection/responses.ts'
import { getExecution, getWithRetry, isForbidden, shownId, recordStatusOf } from '../executions/calls.ts'
import { askAtInterrupt } from '../executions/interruption.ts'
import { noteStillRunning } from '../executions/follow-up.ts'
import { waitForEnd } from '../executions/wait.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure, HttpFailure } from '../failures.ts'
import { addCommonOptions, addWidthOption, splitAttributes, type CommonFlags, type WidthFlags } from '../options.ts'
import { attributeOf, printable, type Json } from '../output/print.ts'
import { getRecord, printList, printRecord } from '../records.ts'
import { addAttributeOption, type AttributeFlags, type CliResource } from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { createPieceOutput } from '../executions/tail-output.ts'
import { executionMessages, followExecution } from '../executions/tail.ts'

/** How packs are printed. */
interface ShownFlags extends AttributeFlags, WidthFlags {
  detail?: boolean
}

interface InstallFlags extends ShownFlags {
  force?: boolean
  skipDependencies?: boolean
}

interface RegisterFlags extends CommonFlags, Registering {}

interface Registering {
  /** Default: all. */
  types?: string[]
  failOnFailure: boolean
}

const addShownOptions = (command: CliCommand): CliCommand =>
  addWidthOption(addAttributeOption(addCommonOptions(command))).option(
    '-d, --detail',
    'print every attribute of the packs',
  )

export function createInstallCommand(context: CommandContext, pack: CliResource): CliCommand {
  return addShownOptions(new CliCommand('install'))
    .description('Install packs, or change their versions. svc prints the progress, then the installed packs.')
    .completions({ source: 'file' })
    .argument('<source...>', 'name, directory, archive or git repository; append =version for a version')
    .option('--force', 'also install packs for other versions of svc, and the valid parts of packs with errors')
    .option('--skip-dependencies', 'do not install the packs that it depends on')
    .notes(
      'A source that starts with a dot, contains a slash (`web/`) or names an archive is a path relative to the current directory. The server must see the same files. `web` alone is always the name of a pack that is part of svc.',
      'The exit code is 1 when the installation fails. Without permission to view executions of packs.install, svc prints only the id of the execution.',
    )
    .examples(
      'svc pack install examples',
      'svc pack install ./my-pack',
      'svc pack install /srv/web-1.2.0.tar.gz',
      'svc pack install https://git.example.org/web.git=v1.2.0',
    )
    .action((sources: string[], flags: InstallFlags) =>
      withSession(context, flags, (session) => installPacks(session, pack, sources, flags)),
    )
}

export function createUninstallCommand(context: CommandContext, pack: CliResource): CliCommand {
  return addShownOptions(new CliCommand('uninstall'))
    .alias('remove')
    .description('Remove packs with all their content. Their configurations stay.')
    .argument('<ref...>', 'references')
    .notes('svc prints the progress. With -a, -d or -w it prints the removed packs too.')
    .examples('svc pack remove examples')
    .action((refs: string[], flags: ShownFlags & CommonFlags) =>
      withSession(context, flags, (session) => uninstallPacks(session, pack, refs, flags)),
    )
}

export function createRegisterCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('register'))
    .description('Register the content of packs, and print the count of each kind.')
    .argument('[pack...]', 'references or directories; default: all packs')
    .completions({ '--types': ['action', 'rule', 'trigger', 'policy', 'alias', 'config'] })
    .option('--types <type...>', 'kinds to register, such as action rule; separated by blanks or commas')
    .option('--no-fail-on-failure', 'exit with 0 even if some content is invalid')
    .notes(
      'Kinds are runner, policy_type, rule_type, trigger, sensor, action, rule, alias, policy and config.',
      'svc prints invalid content on standard error with file, line and key.',
      'svc-register-content, kept for existing installations, does the same with other flags and without a login.',
    )
    .examples('svc pack register examples --types action rule')
    .action((packs: string[], flags: RegisterFlags) =>
      withSession(context, flags, (session) => registerPacks(session, packs, flags)),
    )
}

async function installPacks(
  session: Session,
  pack: CliResource,
  sources: string[],
  flags: InstallFlags,
): Promise<number> {
  const body = {
    packs: sources.map(absolute),
    ...(flags.force === true ? { force: true } : {}),
    ...(flags.skipDependencies === true ? { skip_dependencies: true } : {}),
  }
  const answer = recordIn(await session.client.call('POST', '/packs/install', { body }))
  return followPackExecution(session, answer, `Installing ${sources.join(', ')}`, async (execution) => {
    const refs = Object.keys(toObject(attributeOf(execution, 'result.packs')))
    const packs = await readPacks(session, pack, refs)
    if (packs === undefined) return false
    await showPacks(session, pack, packs, flags)
    return true
  })
}

/**
 * A source that is meant as a path on this machine becomes absolute; any other one, such as the name of a pack, stays.
 */
function absolute(source: string): string {
  const isThere = existsSync(pathToOpen(source))
  // A version may have slashes, as names of branches do.
  const [, path = source, version = ''] = isThere ? [] : (/^(.+?)(=[^=]*)?$/.exec(source) ?? [])
  // `examples` is a name although there may be a folder of that name; `web/` and `packs/web` can only be folders.
  const isPath =
    /^\.{1,2}(?:\/|$)/.test(path) ||
    ((isThere || existsSync(pathToOpen(path))) &&
      (/^[^/:]+\//.test(path) || /^[^/:]+\.(?:tar|tar\.gz|tgz)$/.test(path)))
  return isPath ? `${absolutePath(path)}${version}` : source
}

async function uninstallPacks(session: Session, pack: CliResource, refs: string[], flags: ShownFlags): Promise<number> {
  const { attr, detail, width } = flags
  const isAsked = attr !== undefined || detail === true || width !== undefined
  const packs = await readPacks(session, pack, refs)
  const answer = recordIn(await session.client.call('POST', '/packs/uninstall', { body: { packs: refs } }))
  return followPackExecution(session, answer, `Removing ${refs.join(', ')}`, async () => {
    if (packs === undefined) return false
    // The output of the execution has shown it.
    if (session.form !== 'human' || isAsked) await showPacks(session, pack, packs, flags)
    return true
  })
}

/** @returns undefined without permission to view packs, which installing does not need @throws NotFound */
async function readPacks(session: Session, pack: CliResource, refs: string[]): Promise<Json[] | undefined> {
  try {
    return await Promise.all(refs.map((ref) => getRecord(session, pack, ref)))
  } catch (error) {
    if (isForbidden(error)) return undefined
    throw error
  }
}

/** One pack as a record, several as a list. */
async function showPacks(
  session: Session,
  pack: CliResource,
  packs: Json[],
  { attr, detail, width }: ShownFlags,
): Promise<void> {
  const { name, pluralName, columns, order } = pack
  const attributes = splitAttributes(attr) ?? (detail === true ? ['all'] : undefined)
  const [first] = packs
  if (first !== undefined && packs.length === 1) {
    await printRecord(session, first, order, attributes ?? (session.form === 'human' ? columns : undefined))
  } else {
    await printList(session, packs, { columns, attributes, widths: width, name, pluralName })
  }
}

/**
 * Prints the output of the execution until it has ended. Machine output is the execution, unless it succeeded and there
 * is a better result.
 *
 * @param showResult prints the result; resolves with false when it cannot
 * @returns the exit code
 */
export async function followPackExecution(
  session: Session,
  answer: Json,
  doing: string,
  showResult: (execution: Json) => Promise<boolean>,
): Promise<number> {
  const id = textOrEmpty(answer['execution_id'])
  const progress = session.progress(doing)
  try {
    const { value: execution, isCanceled } = await askAtInterrupt(session, id, () => readToEnd(session, id))
    progress.stop()
    const isSuccess = recordStatusOf(execution) === 'succeeded'
    const isShown = isSuccess && (await showResult(execution))
    if (!isShown && session.form !== 'human') await session.printMachine(execution)
    if (isCanceled) return exitCodes.interrupted
    return isSuccess ? exitCodes.ok : exitCodes.failed
  } catch (error) {
    progress.stop()
    if (!isForbidden(error)) {
      noteStillRunning(session, id, error)
      throw error
    }
    if (session.form !== 'human') await session.printMachine(answer)
    else await session.print(`Execution ${shownId(id)} does the work. You have no permission to view it.\n`)
    return exitCodes.ok
  }
}

async function readToEnd(session: Session, id: string): Promise<Json> {
  const begun = await getExecution(session, id)
  if (session.form === 'human') {
    const options = { includeMetadata: false, isReachable: true }
    const { sayEnded } = executionMessages(id)
    // The output of the execution itself is enough, as long as it succeeds.
    await followExecution(session, begun, options, createPieceOutput(session, id, options), {
      sayStarted: () => Promise.resolve(),
      sayEnded: async (output, status) => (status === 'succeeded' ? undefined : sayEnded(output, status)),
    })
  } else {
    await waitForEnd(session, id)
  }
  return getWithRetry(session, id)
}

/** @returns the exit code */
export async function registerPacks(
  session: Session,
  packs: string[],
  { types, failOnFailure }: Registering,
): Promise<number> {
  const kinds = types?.flatMap((type) => type.split(',')).filter((type) => type !== '')
  const body = {
    ...(packs.length === 0 ? {} : { packs: packs.map((name) => (name.includes('/') ? absolutePath(name) : name)) }),
    ...(kinds === undefined ? {} : { types: kinds }),
    // Problems come back together with what has been registered.
    fail_on_failure: false,
  }
  const progress = session.progress('Registering')
  const answer = recordIn(await session.client.call('POST', '/packs/register', { body }).catch(throwAbsence))
  progress.stop()
  const { problems, warnings, more_problems: moreProblems, more_warnings: moreWarnings, ...counts } = answer
  const invalid = toList(problems)
  await printRecord(session, session.form === 'human' ? counts : answer, [], undefined)
  if (session.form === 'human') {
    for (const problem of invalid) session.note(`${describe(problem)}\n`)
    if (typeof moreProblems === 'number') session.note(`… and ${moreProblems} more problems\n`)
    for (const warning of toList(warnings)) session.note(`Warning: ${describe(warning)}\n`)
    if (typeof moreWarnings === 'number') session.note(`… and ${moreWarnings} more warnings\n`)
  }
  return invalid.length > 0 && failOnFailure ? exitCodes.failed : exitCodes.ok
}

/** Gives a pack that is not on disk the exit code of everything that is not found. */
function throwAbsence(error: unknown): never {
  const isAbsent = error instanceof HttpFailure && error.code === 'PACK_NOT_ON_DISK'
  throw isAbsent ? new CliFailure(error.message, exitCodes.usage) : error
}

/** `web/actions/deploy.yaml:12 (parameters.cmd): <message>` */
function describe(problem: Json): string {
  const { line, key } = problem
  const place = `${textOrEmpty(problem['pack'])}/${textOrEmpty(problem['file'])}${typeof line === 'number' ? `:${line}` : ''}`
  const where = typeof key === 'string' ? `${place} (${key})` : place
  return printable(`${where}: ${textOrEmpty(problem['message'])}`)
}
