/** `svc pack`: folders of actions, rules and more: which there are, and getting others (contract 09, 9.3). */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { CliCommand } from '../command.ts'
import {
  exitCodeOf,
  getExecution,
  recordIn,
  statusOf,
  textOf,
  toList,
  toObject,
  waitForEnd,
} from '../execution-calls.ts'
import { exitCodes } from '../exit-codes.ts'
import { HttpFailure, Interrupted } from '../failures.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { printable, type Json } from '../print.ts'
import { getRecord } from '../records.ts'
import { createGetCommand, createListCommand, type Resource } from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { tailExecution } from '../tail.ts'

const pack: Resource = {
  name: 'Pack',
  pluralName: 'Packs',
  path: '/packs',
  columns: ['ref', 'name', 'description', 'version', 'author'],
  order: ['id', 'uid', 'ref', 'name', 'description', 'version', 'author', 'path', 'files'],
}

interface InstallFlags extends CommonFlags {
  force?: boolean
  skipDependencies?: boolean
}

interface RegisterFlags extends CommonFlags {
  types?: string
  failOnFailure: boolean
}

export function createPackCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, pack).description('List packs.').examples('svc pack list')

  const get = createGetCommand(context, pack, '<ref...>', 'references or ids')
    .description('Show packs with their files.')
    .examples('svc pack get examples')

  const install = addCommonOptions(new CliCommand('install'))
    .description('Install packs, or other versions of them, and print how that goes.')
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
      withSession(context, flags, (session) => installPacks(session, sources, flags)),
    )

  const uninstall = addCommonOptions(new CliCommand('uninstall'))
    .alias('remove')
    .description('Remove packs with all that they have brought; their configurations stay.')
    .argument('<ref...>', 'references')
    .examples('svc pack remove examples')
    .action((refs: string[], flags: CommonFlags) =>
      withSession(context, flags, (session) => uninstallPacks(session, refs)),
    )

  const register = addCommonOptions(new CliCommand('register'))
    .description('Register what the folders of packs hold.')
    .argument('[pack...]', 'references, or paths of folders; without any: all packs')
    .option('--types <types>', 'only these kinds, with commas between them, such as action,rule')
    .option('--no-fail-on-failure', 'end with 0 although something could not be used')
    .notes('It prints how much of each kind there is. What cannot be used is named with file, line and key.')
    .examples('svc pack register examples --types action,rule')
    .action((packs: string[], flags: RegisterFlags) =>
      withSession(context, flags, (session) => registerPacks(session, packs, flags)),
    )

  return new CliCommand('pack')
    .addCommand(list)
    .addCommand(get)
    .addCommand(install)
    .addCommand(uninstall)
    .addCommand(register)
}

async function installPacks(session: Session, sources: string[], flags: InstallFlags): Promise<number> {
  const answer = await session.client.call('POST', '/packs/install', {
    body: {
      packs: sources.map(absolute),
      ...(flags.force === true ? { force: true } : {}),
      ...(flags.skipDependencies === true ? { skip_dependencies: true } : {}),
    },
  })
  return followTo(session, recordIn(answer))
}

/** What is meant as a path of this machine, as the server needs it; it may know names that are not here. */
function absolute(source: string): string {
  const isThere = existsSync(source)
  // A version may have slashes, as names of branches do.
  const [, path = source, version = ''] = isThere ? [] : (/^(.+?)(=[^=]*)?$/.exec(source) ?? [])
  // `examples` is a name although there may be a folder of that name; `web/` and `packs/web` can only be folders.
  const isPath =
    /^\.{1,2}(?:\/|$)/.test(path) ||
    ((isThere || existsSync(path)) && (/^[^/:]+\//.test(path) || /^[^/:]+\.(?:tar|tar\.gz|tgz)$/.test(path)))
  return isPath ? `${resolve(path)}${version}` : source
}

async function uninstallPacks(session: Session, refs: string[]): Promise<number> {
  for (const ref of refs) {
    try {
      await getRecord(session, pack.name, pack.path, ref)
    } catch (error) {
      // Who may remove a pack need not be allowed to look at it.
      if (!(error instanceof HttpFailure && error.status === 403)) throw error
    }
  }
  return followTo(session, recordIn(await session.client.call('POST', '/packs/uninstall', { body: { packs: refs } })))
}

/** Prints what the execution says until it has ended. @returns the exit code */
async function followTo(session: Session, answer: Json): Promise<number> {
  const id = textOf(answer['execution_id'])
  try {
    const record = await getExecution(session, id)
    if (session.form === 'human') return exitCodeOf(await tailExecution(session, record, { includeMetadata: false }))
    await waitForEnd(session, id)
    const ended = await getExecution(session, id)
    await session.printMachine(ended)
    return exitCodeOf(statusOf(ended))
  } catch (error) {
    if (error instanceof Interrupted) {
      session.note(`\nThe execution goes on. To cancel it, execute:\n svc execution cancel ${id}\n`)
    }
    if (!(error instanceof HttpFailure && error.status === 403)) throw error
    if (session.form !== 'human') await session.printMachine(answer)
    else await session.print(`Execution ${id} does it; you may not view executions of that action.\n`)
    return exitCodes.ok
  }
}

async function registerPacks(session: Session, packs: string[], flags: RegisterFlags): Promise<number> {
  const body = {
    ...(packs.length === 0 ? {} : { packs: packs.map((name) => (name.includes('/') ? resolve(name) : name)) }),
    ...(flags.types === undefined ? {} : { types: flags.types.split(',').map((type) => type.trim()) }),
    // What is wrong comes back with what has been registered.
    fail_on_failure: false,
  }
  const progress = session.progress('Registering')
  const answer = recordIn(await session.client.call('POST', '/packs/register', { body }))
  progress.stop()
  const problems = toList(answer['problems'])
  if (session.form === 'human') {
    const counts = Object.entries(toObject(answer)).filter(([name]) => name !== 'problems')
    await session.print(counts.map(([name, count]) => `${name}: ${String(count)}\n`).join(''))
    for (const problem of problems) session.note(`${describe(problem)}\n`)
  } else {
    await session.printMachine(answer)
  }
  return problems.length > 0 && flags.failOnFailure ? exitCodes.failed : exitCodes.ok
}

/** `web/actions/deploy.yaml:12 (parameters.cmd): <message>` */
function describe(problem: Json): string {
  const { line, key } = problem
  const place = `${textOf(problem['pack'])}/${textOf(problem['file'])}${typeof line === 'number' ? `:${line}` : ''}`
  const where = typeof key === 'string' ? `${place} (${key})` : place
  return printable(`${where}: ${textOf(problem['message'])}`)
}
