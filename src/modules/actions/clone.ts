/** Copies an action with its files into another pack (contract 02, 2.2). */
import { posix } from 'node:path'
import {
  actionExists,
  bodyInvalid,
  dataFileInvalid,
  destinationPackMissing,
  entryPointNotFound,
  systemPackFixed,
} from '../../core/errors.ts'
import { newId } from '../../core/ids.ts'
import { entryPointFile, yamlTextOf } from '../../core/pack-content.ts'
import { actionResource } from '../../core/permissions.ts'
import { merge } from '../../db/index.ts'
import type { KeyedLock } from '../../lib/concurrency/index.ts'
import { problemOfContainedFile, readContainedBytes } from '../../lib/files/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { PlanEvent } from '../datastore/ports.ts'
import { aboutAction, commitWithFiles, filesOf, planWritten, type ActionCaller } from './changes.ts'
import { MAX_ENTRY_POINT_BYTES, pathInPack, removeFiles, writeFiles, type FileChange, type NewFile } from './files.ts'
import { actionRecordOf, type ActionService } from './service.ts'
import type { ActionStore } from './store.ts'
import type { ActionClone, ActionDefinition, ActionRecord } from './types.ts'

/** Copies of actions go into packs of the site. */
const systemPacks: ReadonlySet<string> = new Set(['core', 'packs', 'linux', 'chatops'])
/** Their entry points are definitions, which lie in a folder of their own. */
const workflowRunners: ReadonlySet<string> = new Set(['orquesta', 'action-chain'])
/** What registration reads of one metadata file. */
const MAX_METADATA_BYTES = 1_048_576

export interface ActionCloning {
  /**
   * Copies the record and the entry point, and writes a metadata file. An overwritten action gets a new id, and its own
   * files go.
   *
   * @throws CONTENT_NOT_FOUND, PERMISSION_DENIED, SYSTEM_PACK_FIXED, PACK_NOT_INSTALLED, ACTION_EXISTS,
   *   ENTRY_POINT_NOT_FOUND, DATA_FILE_INVALID, PACK_FILE_DENIED, PACK_FILE_FAILED; then nothing has changed
   */
  clone(caller: ActionCaller, refOrId: string, wanted: ActionClone): Promise<ActionRecord>
}

export function createActionCloning(deps: {
  store: ActionStore
  service: Pick<ActionService, 'get' | 'folderOf' | 'commit'>
  /** Shared with all other changes of actions. */
  withLock: KeyedLock
  readonly planEvent: PlanEvent
  log: Log
}): ActionCloning {
  const { store, service, withLock, planEvent, log } = deps

  /** @throws ENTRY_POINT_NOT_FOUND */
  async function entryPointOf(source: ActionRecord, path: string): Promise<NewFile> {
    const folder = service.folderOf(source.pack)
    if (folder === undefined) {
      throw entryPointNotFound(source.ref, `the pack "${source.pack}" has no folder on this server.`)
    }
    const file = await readContainedBytes(
      folder,
      entryPointFile('actions', source.entry_point) ?? '',
      MAX_ENTRY_POINT_BYTES,
    )
    if ('problem' in file) throw entryPointNotFound(source.ref, `its file is ${file.problem}.`)
    return { file_path: path, content: file.bytes, isExecutable: (file.mode & 0o111) !== 0 }
  }

  /** A copy replaces files of the action that it overwrites, and no others. @throws DATA_FILE_INVALID */
  async function checkFiles(
    folder: string,
    paths: readonly string[],
    before: ActionRecord | undefined,
    shared: ReadonlySet<string>,
  ): Promise<void> {
    const own = new Set(before === undefined ? [] : filesOf(before))
    for (const path of paths) {
      const isFree = own.has(path) || (await problemOfContainedFile(folder, path)) === 'missing'
      if (!isFree) throw dataFileInvalid(path, 'it exists already. Move it, or give the copy another name')
      if (shared.has(path)) throw dataFileInvalid(path, 'another action uses it. Give the copy another name')
    }
  }

  async function copy(caller: ActionCaller, source: ActionRecord, wanted: ActionClone): Promise<ActionRecord> {
    const { dest_pack: pack, dest_action: name, overwrite = false } = wanted
    const ref = `${pack}.${name}`
    caller.rights.require('action_create', actionResource(ref))
    const before = store.findByRef(ref)
    if (before !== undefined && overwrite) caller.rights.require('action_delete', actionResource(ref))
    if (systemPacks.has(pack)) throw systemPackFixed('Action', ref)
    if (ref === source.ref) {
      throw bodyInvalid('dest_action: the copy is the action itself; give it another name or pack.', {
        path: ['dest_action'],
      })
    }
    const folder = service.folderOf(pack)
    if (folder === undefined) throw destinationPackMissing(pack)
    if (before !== undefined && !overwrite) throw actionExists(ref)

    const record = copyOf(source, pack, name)
    const metadata = yamlTextOf(definitionOf(record), MAX_METADATA_BYTES)
    if (metadata === undefined) {
      throw dataFileInvalid(record.metadata_file, `it would be larger than ${MAX_METADATA_BYTES} bytes`)
    }
    const files: NewFile[] = [{ file_path: record.metadata_file, content: metadata }]
    if (record.entry_point !== '') files.push(await entryPointOf(source, record.entry_point))
    const paths = files.map(({ file_path: path }) => pathInPack(path))
    const others = store.ofPack(pack).filter(({ id }) => id !== before?.id)
    const shared = new Set(others.flatMap(filesOf))
    await checkFiles(folder, paths, before, shared)

    const left = (before === undefined ? [] : filesOf(before)).filter(
      (path) => !paths.includes(path) && !shared.has(path),
    )
    const change = await replaceFiles(pack, folder, files, left)
    const steps = [...(before === undefined ? [] : [store.delete(before.id)]), store.insert(record)]
    const events = planWritten(planEvent, record.ref, change)
    const unit = merge({ steps, facts: [], subject: record.id }, ...events)
    await commitWithFiles(service, change, unit, `Action "${ref}"`)
    if (before !== undefined) {
      log.audit(
        'action.deleted',
        `Action deleted. Action.id=${before.id}`,
        aboutAction(before, caller, { files: left }),
      )
    }
    log.audit('action.cloned', `Action cloned. Action.id=${record.id}`, {
      ...aboutAction(record, caller, { files: paths }),
      source_action: source.ref,
    })
    return record
  }

  return {
    clone(caller, refOrId, wanted) {
      const { id, pack } = service.get(refOrId)
      // Always in the same order, so that two copies in opposite directions do not wait for each other.
      const [first = pack, second = pack] = [pack, wanted.dest_pack].toSorted()
      const work = (): Promise<ActionRecord> => {
        const source = service.get(id)
        caller.rights.require('action_view', actionResource(source.ref))
        return copy(caller, source, wanted)
      }
      return withLock(first, () => (first === second ? work() : withLock(second, work)))
    },
  }
}

/** Writes new files and removes old ones: all of it or nothing. */
async function replaceFiles(
  pack: string,
  folder: string,
  files: readonly NewFile[],
  removed: readonly string[],
): Promise<FileChange> {
  const writing = await writeFiles(pack, folder, files, { makesFolder: true })
  try {
    const removal = await removeFiles(pack, folder, removed)
    return {
      written: writing.written,
      async keep() {
        await removal.keep()
        await writing.keep()
      },
      async undo() {
        await removal.undo()
        await writing.undo()
      },
    }
  } catch (error) {
    await writing.undo()
    throw error
  }
}

function copyOf(source: ActionRecord, pack: string, name: string): ActionRecord & { metadata_file: string } {
  const { id: _i, uid: _u, ref: _r, ...definition } = source
  const metadata = { metadata_file: `actions/${name}.yaml` }
  const copied = { ...definition, pack, name, entry_point: entryPointIn(source, name), ...metadata }
  return { ...actionRecordOf(copied, newId()), ...metadata }
}

/** Relative to the folder `actions`. */
function entryPointIn({ entry_point: path, runner_type: runner }: ActionRecord, name: string): string {
  if (path === '') return ''
  return workflowRunners.has(runner) ? `workflows/${name}.yaml` : `${name}${posix.extname(path)}`
}

/** What its author would write: without what has its default. */
function definitionOf(record: ActionRecord): Partial<ActionDefinition> {
  const { id: _i, uid: _u, ref: _r, metadata_file: _m, ...definition } = record
  const isSet = ([attribute, value]: [string, unknown]): boolean =>
    attribute === 'entry_point' || typeof value !== 'object' || value === null || Object.keys(value).length > 0
  return Object.fromEntries(Object.entries(definition).filter(isSet))
}
