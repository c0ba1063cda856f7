/**
 * The check of a StackStorm installation: a server of the check's own registers its packs where they are, so that the
 * verdict is that of every server.
 */
import { copyFile, mkdir, readdir, stat, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import {
  addContent,
  findPlaces,
  openLedger,
  packKinds,
  percentOf,
  readConf,
  scanPack,
  sumOf,
  type CheckReport,
  type GivenPlaces,
  type PackReport,
  type Places,
} from '../../migrate/index.ts'
import { describeFileError } from '../../lib/files/index.ts'
import type { FileProblem } from '../../lib/text/index.ts'
import { segment } from '../connection/client.ts'
import { recordIn, textOrEmpty, toList } from '../connection/responses.ts'
import { withTrialServer } from '../control/trial-server.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { printable, type Json } from '../output/print.ts'
import { progressText } from '../output/progress.ts'
import type { CommandContext, Session } from '../session.ts'
import { allRecords, REGISTER_MS, toProblem } from './calls.ts'
import { importPasswords, importRoles } from './import-files.ts'
import { firstKinds, importRecords, lastKinds, type Manner } from './import-records.ts'
import { createRows, refusalOf } from './rows.ts'
import { joinRoles, readSource } from './source.ts'
import type { CommonFlags } from '../options.ts'

/** The limit of the server for a configuration. */
const MAX_CONFIG_BYTES = 1_048_576
const MAX_DEFINITION_BYTES = 1_048_576
/** Of one pack; the server names no more at once. */
const MAX_PROBLEMS = 100
/** Records that are named. */
const MAX_REFUSED = 1_000

const workflowRunners: ReadonlySet<unknown> = new Set(['orquesta', 'action-chain'])

/** @throws CliFailure when nothing of StackStorm is there */
export async function locate(folder: string, given: GivenPlaces): Promise<Places> {
  let places: Places
  try {
    places = await findPlaces(folder, given)
  } catch (error) {
    throw new CliFailure(`${printable(folder)} cannot be read: ${describeFileError(folder, error)}`, exitCodes.usage)
  }
  const { packs, configs, conf, exports, keyFiles, passwordFiles, rbac } = places
  if ([packs, configs, conf, exports, keyFiles, passwordFiles, rbac].every((found) => found.length === 0)) {
    throw new CliFailure(
      `${printable(folder)} has nothing of StackStorm: no folder with packs, no configs, no st2.conf, no export.`,
      exitCodes.usage,
    )
  }
  return places
}

/** @param done gets the report; resolves with the exit code */
export async function checkInstallation(
  context: CommandContext,
  folder: string,
  given: GivenPlaces,
  flags: CommonFlags,
  done: (session: Session, report: CheckReport) => Promise<number>,
): Promise<void> {
  const places = await locate(folder, given)
  const { options, problems } = await readConf(places.conf)
  const report: CheckReport = {
    folder,
    packs: [],
    records: {},
    refused_records: [],
    refused_records_not_listed: 0,
    left: {},
    history: {},
    options: options.map(({ option, value, outcome, why }) => ({ option, value, outcome, why })),
    content: {},
    usable_percent: 100,
    needs_old_names: false,
    skipped: places.skipped,
    skipped_not_listed: places.skippedMore,
    problems,
  }
  await withTrialServer(
    context,
    {
      flags,
      settings: {
        'content.packs_base_paths': places.packs.map((_, i) => `from/${i}`).join(':'),
        'compat.stackstorm': 'True',
        // So that users and roles are checked too; the control socket needs no login.
        'auth.enable': 'True',
        'rbac.enable': 'True',
        'rbac.backend': 'default',
      },
      prepare: (base) => prepare(base, places, report),
    },
    async (session, base) => {
      const records = await prepareRecords(session, base, places, report)
      // Rules of packs must not fire for keys that appear.
      await records.importFirst()
      await checkPacks(session, base, places, report)
      await records.importRest()
      report.usable_percent = percentOf(sumOf(report.content))
      report.needs_old_names = report.packs.some(({ old_names: names }) => names.length > 0)
      return done(session, report)
    },
  )
}

async function prepare(base: string, { packs, configs }: Places, report: CheckReport): Promise<void> {
  for (const folder of ['packs', 'configs', ...packs.map((_, i) => `from/${i}`)])
    await mkdir(join(base, folder), { recursive: true, mode: 0o700 })
  for (const folder of configs) {
    for (const name of await readdir(folder).catch(() => [])) {
      if (!/^[^.].*\.ya?ml$/.test(name)) continue
      const path = join(folder, name)
      const found = await stat(path).catch(() => undefined)
      if (found?.isFile() === true && found.size <= MAX_CONFIG_BYTES) {
        await copyFile(path, join(base, 'configs', name.replace(/\.yml$/, '.yaml')))
      } else report.problems.push(`${path}: not a regular file of at most ${MAX_CONFIG_BYTES} bytes`)
    }
  }
}

interface Known {
  /** Where the server finds it. */
  path: string
  report: PackReport
  /** `actions/….yaml` → what the server has of it. */
  scanned: Awaited<ReturnType<typeof scanPack>>
}

async function checkPacks(session: Session, base: string, { packs }: Places, report: CheckReport): Promise<void> {
  const included = new Set((await allRecords(session, '/packs', {})).map(({ ref }) => textOrEmpty(ref)))
  const total = packs.reduce((sum, { names }) => sum + names.length, 0)
  const progress = session.progress('Reading packs')
  const known: Known[] = []
  const seen = new Map<string, string>()
  let count = 0
  for (const [i, { folder, names }] of packs.entries()) {
    for (const name of names) {
      progress.update(`Registering packs: ${progressText(count, total)}, now ${name}`)
      count += 1
      const path = join(base, 'from', String(i), name)
      const scanned = await scanPack(join(folder, name))
      const pack: PackReport = {
        pack: name,
        folder: join(folder, name),
        state: 'ready',
        content: {},
        config: 'none',
        problems: [],
        problems_not_listed: 0,
        warnings: [],
        warnings_not_listed: 0,
        old_names: scanned.oldNames,
        requirements: scanned.requirements,
      }
      report.packs.push(pack)
      const counts = seen.get(name)
      seen.set(name, counts ?? pack.folder)
      if (counts !== undefined) {
        pack.state = 'refused'
        pack.problems = [{ file: '.', message: `${counts} has a pack of this name, which counts instead` }]
        continue
      }
      if (included.has(name)) {
        pack.state = 'included'
        pack.old_names = []
        pack.requirements = []
        continue
      }
      // The pack stays where it is. It comes only now, so that the start does not register all of them at once.
      await symlink(resolve(folder, name), path)
      const one = { path, report: pack, scanned }
      known.push(one)
      await register(session, one)
    }
  }
  // Rules, aliases and policies may need what a later pack has.
  const again = known.filter(({ report: { problems } }) =>
    problems.some(({ file }) => /^(?:rules|aliases|policies)\//.test(file)),
  )
  for (const [i, one] of again.entries()) {
    progress.update(`Registering packs again: ${progressText(i, again.length)}`)
    await register(session, one)
  }
  progress.update('Inspecting workflows')
  const records = await allRecords(session, '/packs', {})
  const refs = new Map(records.map(({ path, ref }) => [textOrEmpty(path), textOrEmpty(ref)]))
  const present = new Set(refs.values())
  for (const { report: pack } of known) {
    pack.problems = pack.problems.map((problem) => ({ ...problem, message: withMissingPack(problem.message, present) }))
  }
  for (const one of known) {
    const ref = refs.get(one.path)
    if (ref !== undefined) {
      one.report.pack = ref
      await inspectWorkflows(session, ref, one.report, (text) => progress.update(text))
    }
    judge(one, ref !== undefined)
    addContent(report.content, one.report.content)
  }
  progress.stop()
}

/** Triggers of a pack that the folder lacks come with that pack. */
function withMissingPack(message: string, present: ReadonlySet<string>): string {
  const [, pack] = /Trigger type "([^".]+)\.[^"]+" does not exist\./.exec(message) ?? []
  return pack === undefined || present.has(pack)
    ? message
    : `${message} The pack "${pack}" is not here: copy it from the old machine too, or install it.`
}

/** Imports the records of exports into the server of the check. */
async function prepareRecords(
  session: Session,
  base: string,
  places: Places,
  report: CheckReport,
): Promise<{ importFirst(): Promise<void>; importRest(): Promise<void> }> {
  const { loaded, site, problems } = await readSource(session, places)
  report.problems.push(...problems)
  for (const [kind, { count }] of Object.entries(loaded.history)) if (count > 0) report.history[kind] = count
  report.left = { ...loaded.left }
  const share = { total: 0, usable: 0 }
  const rows = createRows(({ kind, name, outcome, why = '', source = '' }) => {
    if (outcome === 'skipped') return
    share.total += 1
    if (outcome !== 'refused') share.usable += 1
    else if (report.refused_records.length < MAX_REFUSED) report.refused_records.push({ kind, name, why, source })
    else report.refused_records_not_listed += 1
  })
  report.records = rows.counts
  const manner: Manner = {
    ledger: await openLedger(join(base, 'keys', 'migrated.json')),
    dryRun: false,
    onConflict: 'replace',
    before: new Map(),
    add: rows.add,
  }
  const server = {
    basePath: base,
    packs: join(base, 'packs'),
    passwordFile: join(base, 'htpasswd'),
  }
  return {
    async importFirst() {
      await importRecords(session, loaded, firstKinds, manner)
      const { problem: problemOfPasswords } = await importPasswords(site.passwords, server, manner)
      if (problemOfPasswords !== undefined) report.problems.push(problemOfPasswords)
      const { problem } = await importRoles(session, joinRoles(loaded, site), server, manner)
      if (problem !== undefined) report.problems.push(problem)
    },
    async importRest() {
      await importRecords(session, loaded, lastKinds, manner)
      const present = new Set((await allRecords(session, '/packs', {})).map(({ ref }) => textOrEmpty(ref)))
      for (const record of report.refused_records) record.why = withMissingPack(record.why, present)
      if (share.total > 0) addContent(report.content, { records: share })
    },
  }
}

/** Registers one pack, and notes what the server says. */
async function register(session: Session, { path, report, scanned }: Known): Promise<void> {
  const body = { packs: [path], fail_on_failure: false }
  let answer: Json
  try {
    answer = recordIn(await session.client.call('POST', '/packs/register', { body, timeoutMs: REGISTER_MS }))
  } catch (error) {
    report.problems = [{ file: '.', message: refusalOf(error) }]
    return
  }
  report.problems = toList(answer['problems']).map(toProblem)
  report.warnings = toList(answer['warnings']).map(toProblem)
  report.warnings_not_listed = Number(answer['more_warnings'] ?? 0)
  report.content = {}
  for (const kind of packKinds) {
    const total = scanned.files[kind]
    const registered = Number(answer[kind] ?? 0)
    // A sensor's file may define several trigger types.
    if (total > 0) report.content[kind] = { total, usable: Math.min(total, registered) }
  }
  report.config = configStateOf(report, Number(answer['configs'] ?? 0) > 0)
  if (report.config !== 'none') report.content.configs = { total: 1, usable: report.config === 'refused' ? 0 : 1 }
}

function configStateOf({ problems, warnings }: PackReport, isUsed: boolean): PackReport['config'] {
  const isOfConfig = ({ file }: FileProblem): boolean => file.startsWith('configs/')
  if (!isUsed) return [...problems, ...warnings].some(isOfConfig) ? 'refused' : 'none'
  return warnings.some(isOfConfig) ? 'unchecked' : 'valid'
}

function judge({ report }: Known, isPack: boolean): void {
  const missing = Object.values(report.content).reduce((sum, { total, usable }) => sum + total - usable, 0)
  report.problems_not_listed = report.problems.length < MAX_PROBLEMS ? 0 : Math.max(0, missing - report.problems.length)
  if (!isPack) report.state = 'refused'
  else if (missing > 0 || report.config === 'refused' || report.problems.length > 0) report.state = 'partly'
}

async function inspectWorkflows(
  session: Session,
  pack: string,
  report: PackReport,
  say: (text: string) => void,
): Promise<void> {
  const actions = await allRecords(session, '/actions', {
    pack,
    include_attributes: 'ref,runner_type,entry_point,metadata_file',
  })
  const share = { total: 0, usable: 0 }
  for (const { ref, runner_type: runner, entry_point: file } of actions) {
    if (!workflowRunners.has(runner)) continue
    say(`Inspecting workflows: ${textOrEmpty(ref)}`)
    share.total += 1
    const problems = await inspect(session, textOrEmpty(ref))
    if (problems.length === 0) share.usable += 1
    for (const message of problems) {
      if (report.problems.length < MAX_PROBLEMS) report.problems.push({ file: `actions/${textOrEmpty(file)}`, message })
      else report.problems_not_listed += 1
    }
  }
  if (share.total > 0) report.content.workflows = share
}

/** @returns mistakes, which keep the workflow from running */
async function inspect(session: Session, action: string): Promise<string[]> {
  try {
    const response = await session.client.openText(`/actions/views/entry_point/${segment(action)}`, {})
    const text = await readText(response)
    const answer = await session.client.call('POST', '/workflows/inspect', {
      query: { action },
      bytes: text,
      headers: { 'Content-Type': 'text/plain; charset=utf-8' },
    })
    return toList(answer.body)
      .filter(({ type }) => type !== 'warning')
      .map(
        ({ message, spec_path: path }) =>
          `${textOrEmpty(message)}${path === undefined ? '' : ` (${textOrEmpty(path)})`}`,
      )
  } catch (error) {
    return [refusalOf(error)]
  }
}

async function readText(response: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response) {
    bytes += chunk.length
    if (bytes > MAX_DEFINITION_BYTES) break
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
