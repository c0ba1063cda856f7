/**
 * The import of a StackStorm installation into the running server of this machine: records through its control socket, so
 * that every rule of the server holds; packs, configurations and definitions as files, as an operator would copy them.
 */
import { open, rm, stat, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Config } from '../../config/index.ts'
import { makeFolder, replaceSecretFile } from '../../lib/files/index.ts'
import { writeJson } from '../../lib/json/index.ts'
import {
  importedHistory,
  leftBehind,
  openLedger,
  proposeConf,
  readConf,
  readLiveActions,
  recoverPacks,
  scanPack,
  type Fields,
  type GivenPlaces,
  type LoadedRecords,
  type Places,
} from '../../migrate/index.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { withSocketSession } from '../operator-session.ts'
import type { CommonFlags } from '../options.ts'
import type { CommandContext, Session } from '../session.ts'
import { locate } from './check.ts'
import { importConfigs, importPacks, importPasswords, importRoles, type ServerPlaces } from './import-files.ts'
import { importHistory } from './import-history.ts'
import { firstKinds, importRecords, lastKinds, type Manner } from './import-records.ts'
import { createRows, type Counts, type Row } from './rows.ts'
import { joinRoles, readSource, type Source } from './source.ts'

/** Rows that a person gets to see; the report has all. */
const MAX_SHOWN = 50

export interface ImportOptions {
  given: GivenPlaces
  dryRun: boolean
  /** Takes over what has run too. */
  history: boolean
  onConflict: 'skip' | 'replace'
  /** Where the report goes; undefined: into the base path of the server, or nowhere with `dryRun`. */
  report: string | undefined
}

export interface ImportSummary {
  folder: string
  dry_run: boolean
  counts: Counts
  /** Conflicts and refusals, at most `MAX_SHOWN`. */
  attention: Row[]
  attention_more: number
  /** Records that are not taken over, by kind. */
  left: { kind: string; count: number; why: string }[]
  history: Record<string, number>
  problems: string[]
  /** What is to be known, and needs no change. */
  notes: string[]
  /** Packs with content that svc cannot use; the report has its first problem. */
  packs_with_problems: string[]
  /** Packs whose Python environment is still to be made. */
  environments: string[]
  /** The proposed configuration file, and the report; empty: none was written. */
  proposed_conf: string
  report: string
}

/** @param done prints the summary; resolves with the exit code */
export async function importInstallation(
  context: CommandContext,
  folder: string,
  config: Config,
  options: ImportOptions,
  flags: CommonFlags,
  done: (session: Session, summary: ImportSummary) => Promise<number>,
): Promise<void> {
  const places = await locate(folder, options.given)
  const { base_path: basePath } = config.system
  await withSocketSession(context, flags, basePath, async (session) => {
    // Before anything is read: nothing can be imported without it.
    await session.client.call('GET', '/packs', { query: { limit: 1 } })
    return done(session, await run(session, folder, places, config, options))
  })
}

async function run(
  session: Session,
  folder: string,
  places: Places,
  config: Config,
  { dryRun, history, onConflict, report }: ImportOptions,
): Promise<ImportSummary> {
  const { base_path: basePath } = config.system
  const { uid } = await stat(basePath)
  if (process.getuid?.() !== uid) {
    throw new CliFailure(`${basePath} belongs to another account (${uid}). Run the import as root or as that account.`)
  }
  const { loaded, site, problems } = await readSource(session, places)
  const summary: ImportSummary = {
    folder,
    dry_run: dryRun,
    counts: {},
    attention: [],
    attention_more: 0,
    left: Object.entries(loaded.left).map(([kind, count]) => ({
      kind,
      count,
      why: leftBehind[kind as keyof typeof leftBehind],
    })), // its own keys
    history: Object.fromEntries(
      Object.entries(loaded.history).flatMap(([kind, { count }]) =>
        count === 0 || (history && isImported(kind)) ? [] : [[kind, count]],
      ),
    ),
    problems,
    notes: [],
    packs_with_problems: [],
    environments: [],
    proposed_conf: '',
    report: '',
  }

  const server: ServerPlaces = {
    basePath,
    packs: config.content.system_packs_base_path,
    passwordFile: passwordFileOf(config),
  }
  const ledgerPath = join(basePath, 'keys', 'migrated.json')
  const out = await openReport(dryRun, report, server)
  const rows = createRows((row) => {
    out.add(row)
    if (row.outcome !== 'conflict' && row.outcome !== 'refused') return
    if (summary.attention.length < MAX_SHOWN) summary.attention.push(row)
    else summary.attention_more += 1
  })
  summary.counts = rows.counts
  const manner: Manner = { ledger: await openLedger(ledgerPath), dryRun, onConflict, before: new Map(), add: rows.add }
  try {
    await importAll(session, places, server, loaded, site, manner, summary)
    const liveActions = history
      ? await readLiveActions(loaded.history.execution.files, loaded.liveActionFiles)
      : new Map<string, Fields>()
    const lookups = { triggerTypes: loaded.triggerTypes, liveActions }
    for (const kind of history ? importedHistory : []) {
      await importHistory(session, kind, loaded.history[kind].files, lookups, manner)
    }
    if (places.conf.length > 0) summary.proposed_conf = await propose(places, server, dryRun)
  } finally {
    summary.report = await out.close(summary)
  }
  return summary
}

const isImported = (kind: string): boolean => (importedHistory as readonly string[]).includes(kind)

async function importAll(
  session: Session,
  places: Places,
  server: ServerPlaces,
  loaded: LoadedRecords,
  site: Source['site'],
  manner: Manner,
  summary: ImportSummary,
): Promise<void> {
  await importRecords(session, loaded, firstKinds, manner)
  if (!manner.dryRun) await recoverPacks(server.packs)
  const { needEnvironment, withProblems } = await importPacks(session, places, loaded, server, manner)
  summary.environments = needEnvironment
  summary.packs_with_problems = withProblems
  const files = new Set(site.configs.map(({ name }) => name))
  await importConfigs(session, site.configs, server, manner)
  loaded.records.config = loaded.records.config.filter(({ converted }) => !files.has(converted.name))
  await importRecords(session, loaded, ['config'], manner)
  const { problem: problemOfPasswords } = await importPasswords(site.passwords, server, manner)
  if (problemOfPasswords !== undefined) summary.problems.push(problemOfPasswords)
  const { note, problem } = await importRoles(session, joinRoles(loaded, site), server, manner)
  if (note !== undefined) summary.notes.push(note)
  if (problem !== undefined) summary.problems.push(problem)
  await importRecords(session, loaded, lastKinds, manner)
}

function passwordFileOf({ system, auth }: Config): string {
  const { file_path: path } = auth.backend_kwargs as { file_path?: unknown }
  return typeof path === 'string' && path !== '' ? path : join(system.base_path, 'htpasswd')
}

async function propose(places: Places, { basePath }: ServerPlaces, dryRun: boolean): Promise<string> {
  if (dryRun) return ''
  const { options } = await readConf(places.conf)
  let hasOldNames = false
  for (const { folder, names } of places.packs) {
    for (const name of names) hasOldNames ||= (await scanPack(join(folder, name))).oldNames.length > 0
  }
  const path = join(basePath, 'migration', 'svc.conf.proposed')
  await replaceSecretFile(path, proposeConf(options, hasOldNames))
  return path
}

interface Report {
  add(row: Row): void
  /** @returns its path; empty: none */
  close(summary: ImportSummary): Promise<string>
}

/** Rows are written as they come: there may be very many. */
async function openReport(dryRun: boolean, given: string | undefined, server: ServerPlaces): Promise<Report> {
  if (given === undefined && dryRun) return { add: () => undefined, close: () => Promise.resolve('') }
  const stamp = new Date().toISOString().replaceAll(/[:.]/g, '-')
  const path = given ?? join(server.basePath, 'migration', `report-${stamp}.json`)
  if (given === undefined) await makeFolder(dirname(path))
  let file: FileHandle
  try {
    file = await open(path, 'w', 0o600)
  } catch (error) {
    throw new CliFailure(
      `The report ${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  let waiting = '{"records": ['
  let isFirst = true
  let writing: Promise<unknown> = Promise.resolve()
  const flush = (): void => {
    const text = waiting
    waiting = ''
    writing = writing.then(() => file.write(text))
  }
  return {
    add(row) {
      waiting += `${isFirst ? '' : ','}\n${writeJson(row)}`
      isFirst = false
      if (waiting.length > FLUSH_CHARACTERS) flush()
    },
    async close(summary) {
      waiting += `\n], "summary": ${writeJson({ ...summary, report: path })}}\n`
      flush()
      await writing.catch(async (error: unknown) => {
        await rm(path, { force: true })
        throw error
      })
      await file.close()
      return path
    },
  }
}

const FLUSH_CHARACTERS = 65_536

/** 0 when nothing needs attention. */
export function exitCodeOf({ attention, problems, packs_with_problems: packs }: ImportSummary): number {
  return attention.length + problems.length + packs.length === 0 ? exitCodes.ok : exitCodes.failed
}
