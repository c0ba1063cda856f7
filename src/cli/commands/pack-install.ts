/** `svc pack install`, `uninstall` and `register`: bringing packs to the server, and taking them away (contract 09, 9.3). */
import { existsSync } from 'node:fs'
import { absolutePath, pathToOpen } from '../cli-process.ts'
import { CliCommand } from '../command.ts'
import { recordIn, textOf, toList, toObject } from '../connection/answers.ts'
import { getExecution, getPatiently, isForbidden, shownId, statusOf } from '../executions/calls.ts'
import { askAtInterrupt } from '../executions/interruption.ts'
import { noteLeft } from '../executions/leaving.ts'
import { waitForEnd } from '../executions/wait.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure, HttpFailure } from '../failures.ts'
import { addCommonOptions, splitAttributes, type CommonFlags } from '../options.ts'
import { attributeOf, printable, type Json } from '../output/print.ts'
import { getRecord, printList, printRecord } from '../records.ts'
import { addAttributeOption, type AttributeFlags, type Resource } from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { createPieceOutput } from '../executions/tail-output.ts'
import { executionWords, followExecution } from '../executions/tail.ts'

interface InstallFlags extends AttributeFlags {
  force?: boolean
  skipDependencies?: boolean
}

interface RegisterFlags extends CommonFlags, Registering {}

interface Registering {
  /** Default: all. */
  types?: string[]
  failOnFailure: boolean
}

export function createInstallCommand(context: CommandContext, pack: Resource): CliCommand {
  return addAttributeOption(addCommonOptions(new CliCommand('install')))
    .description('Install packs, or other versions of them: print how that goes, then what is installed.')
    .words({ source: 'file' })
    .argument('<source...>', 'where from: a name, a folder, an archive, or a git repository; then =version')
    .option('--force', 'also what is made for other versions, and of what has problems as much as can be used')
    .option('--skip-dependencies', 'without the packs that it needs')
    .notes(
      'A source that begins with a dot, has a slash in it (`web/`) or names an archive is a path, which starts where this command is run; the server has to see the same files. `web` alone is always the name of a pack that comes with the program.',
      'It ends with 1 when the installation fails. Who may install, but not view executions of packs.install, is told the id of the execution and not how it ends.',
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

export function createUninstallCommand(context: CommandContext, pack: Resource): CliCommand {
  return addCommonOptions(new CliCommand('uninstall'))
    .alias('remove')
    .description('Remove packs with all that they have brought; their configurations stay.')
    .argument('<ref...>', 'references')
    .examples('svc pack remove examples')
    .action((refs: string[], flags: CommonFlags) =>
      withSession(context, flags, (session) => uninstallPacks(session, pack, refs)),
    )
}

export function createRegisterCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('register'))
    .description('Register what the folders of packs hold, and tell how many there are of each kind.')
    .argument('[pack...]', 'references, or paths of folders; without any: all packs')
    .words({ '--types': ['action', 'rule', 'trigger', 'policy', 'alias', 'config'] })
    .option('--types <type...>', 'only these kinds, such as action rule; with blanks or commas between them')
    .option('--no-fail-on-failure', 'end with 0 although something could not be used')
    .notes(
      'Kinds are runner, policy_type, rule_type, trigger, sensor, action, rule, alias, policy and config.',
      'What cannot be used is named with file, line and key, on standard error.',
      'svc-register-content, which existing installations have, does the same with other flags, and without a login.',
    )
    .examples('svc pack register examples --types action rule')
    .action((packs: string[], flags: RegisterFlags) =>
      withSession(context, flags, (session) => registerPacks(session, packs, flags)),
    )
}

async function installPacks(session: Session, pack: Resource, sources: string[], flags: InstallFlags): Promise<number> {
  const body = {
    packs: sources.map(absolute),
    ...(flags.force === true ? { force: true } : {}),
    ...(flags.skipDependencies === true ? { skip_dependencies: true } : {}),
  }
  const answer = recordIn(await session.client.call('POST', '/packs/install', { body }))
  return follow(session, answer, `Installing ${sources.join(', ')}`, async (execution) => {
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

async function uninstallPacks(session: Session, pack: Resource, refs: string[]): Promise<number> {
  const packs = await readPacks(session, pack, refs)
  const answer = recordIn(await session.client.call('POST', '/packs/uninstall', { body: { packs: refs } }))
  return follow(session, answer, `Removing ${refs.join(', ')}`, async () => {
    if (packs === undefined) return false
    // People have read it in the output of the execution.
    if (session.form !== 'human') await showPacks(session, pack, packs, {})
    return true
  })
}

/** @returns undefined when they may not be looked at: whoever may install need not @throws NotFound */
async function readPacks(session: Session, pack: Resource, refs: string[]): Promise<Json[] | undefined> {
  try {
    return await Promise.all(refs.map((ref) => getRecord(session, pack, ref)))
  } catch (error) {
    if (isForbidden(error)) return undefined
    throw error
  }
}

/** One pack as a record, several as a list. */
async function showPacks(session: Session, pack: Resource, packs: Json[], { attr }: AttributeFlags): Promise<void> {
  const { name, pluralName, columns, order } = pack
  const attributes = splitAttributes(attr)
  const [first] = packs
  if (first !== undefined && packs.length === 1) {
    await printRecord(session, first, order, attributes ?? (session.form === 'human' ? columns : undefined))
  } else {
    await printList(session, packs, { columns, attributes, name, pluralName })
  }
}

/**
 * Prints what the execution says until it has ended; in machine form the execution itself, unless it succeeded and there
 * is something better.
 *
 * @param showResult prints what came of it; false: it cannot
 * @returns the exit code
 */
export async function follow(
  session: Session,
  answer: Json,
  doing: string,
  showResult: (execution: Json) => Promise<boolean>,
): Promise<number> {
  const id = textOf(answer['execution_id'])
  const progress = session.progress(doing)
  try {
    const { value: execution, isCanceled } = await askAtInterrupt(session, id, () => readToEnd(session, id))
    progress.stop()
    const isSuccess = statusOf(execution) === 'succeeded'
    const isShown = isSuccess && (await showResult(execution))
    if (!isShown && session.form !== 'human') await session.printMachine(execution)
    if (isCanceled) return exitCodes.interrupted
    return isSuccess ? exitCodes.ok : exitCodes.failed
  } catch (error) {
    progress.stop()
    if (!isForbidden(error)) {
      noteLeft(session, id, error)
      throw error
    }
    if (session.form !== 'human') await session.printMachine(answer)
    else await session.print(`Execution ${shownId(id)} does it; you may not view executions of that action.\n`)
    return exitCodes.ok
  }
}

async function readToEnd(session: Session, id: string): Promise<Json> {
  const begun = await getExecution(session, id)
  if (session.form === 'human') {
    const options = { includeMetadata: false, isReachable: true }
    const { sayEnded } = executionWords(id)
    // The output of the execution itself is enough, as long as it succeeds.
    await followExecution(session, begun, options, createPieceOutput(session, id, options), {
      sayStarted: () => Promise.resolve(),
      sayEnded: async (output, status) => (status === 'succeeded' ? undefined : sayEnded(output, status)),
    })
  } else {
    await waitForEnd(session, id)
  }
  return getPatiently(session, id)
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
  const { problems, ...counts } = answer
  const told = toList(problems)
  await printRecord(session, session.form === 'human' ? counts : answer, [], undefined)
  if (session.form === 'human') for (const problem of told) session.note(`${describe(problem)}\n`)
  return told.length > 0 && failOnFailure ? exitCodes.failed : exitCodes.ok
}

/** Gives a pack that is not on disk the exit code of everything that is not found. */
function throwAbsence(error: unknown): never {
  const isAbsent = error instanceof HttpFailure && error.code === 'PACK_NOT_ON_DISK'
  throw isAbsent ? new CliFailure(error.message, exitCodes.usage) : error
}

/** `web/actions/deploy.yaml:12 (parameters.cmd): <message>` */
function describe(problem: Json): string {
  const { line, key } = problem
  const place = `${textOf(problem['pack'])}/${textOf(problem['file'])}${typeof line === 'number' ? `:${line}` : ''}`
  const where = typeof key === 'string' ? `${place} (${key})` : place
  return printable(`${where}: ${textOf(problem['message'])}`)
}
