/** Creates, replaces and deletes actions on request, with their files (contract 02, 2.2). */
import { fieldOf } from '../../lib/schema/index.ts'
import { hostname } from 'node:os'
import { Conflict, merge, type Step, type Unit } from '../../db/index.ts'
import { bodyInvalid, conflict, contentChanged, nameTaken, packProtected } from '../../core/errors.ts'
import { problemOfContainedFile } from '../../lib/files/index.ts'
import { aboutCaller, isTagged, type Caller, type ApiRequest } from '../../http/index.ts'
import { newId } from '../../core/ids.ts'
import type { Log, LogFields } from '../../lib/log/index.ts'
import { defaultPack, entryPointFile } from '../../core/pack-content.ts'
import type { KeyedLock } from '../../lib/concurrency/index.ts'
import { checkActionDefinition } from './definition.ts'
import { actionsFolder, pathInPack, removeFiles, writeFiles, type FileChange } from './files.ts'
import { actionRecordOf, entityTagOf, type ActionService } from './service.ts'
import type { ActionStore } from './store.ts'
import type { ActionDefinition, ActionRecord, ActionRequest, DataFile } from './types.ts'
import type { PlanEvent } from '../datastore/ports.ts'
import { actionResource, packResource } from '../../core/permissions.ts'

export type ActionCaller = Caller & Pick<ApiRequest, 'rights'>

export interface ActionChanges {
  /**
   * Writes the files before the record, and removes them again when the record cannot be stored.
   *
   * @throws PACK_PROTECTED, BODY_INVALID, NAME_TAKEN, PERMISSION_DENIED, and the errors of `writeFiles`
   */
  create(caller: ActionCaller, given: ActionRequest): Promise<ActionRecord>
  /**
   * Missing attributes get their defaults.
   *
   * @param ifMatch entity tags; fails unless one of them is that of the current action
   * @throws CONTENT_NOT_FOUND, CONTENT_CHANGED, as `create`
   */
  update(caller: ActionCaller, refOrId: string, given: ActionRequest, ifMatch?: string): Promise<ActionRecord>
  /**
   * @param removesFiles also deletes the metadata file and the entry point, unless another action needs them
   * @throws CONTENT_NOT_FOUND, PACK_PROTECTED, and the errors of `removeFiles`; then action and files are unchanged
   */
  delete(caller: ActionCaller, refOrId: string, removesFiles: boolean): Promise<void>
}

/** The pack that ships with svc. */
const protectedPack = 'core'
const writtenRef = 'core.svc.action.file_written'

export function createActionChanges(deps: {
  store: ActionStore
  service: Pick<ActionService, 'get' | 'findRunnerType' | 'folderOf' | 'commit'>
  /** Shared with the registration of pack content, so that both never run at once. */
  withLock: KeyedLock
  readonly planEvent: PlanEvent
  log: Log
}): ActionChanges {
  const { store, service, withLock, planEvent, log } = deps

  /** @throws PACK_PROTECTED, BODY_INVALID */
  async function check({
    data_files: _f,
    id: _i,
    uid: _u,
    ref: _r,
    ...given
  }: ActionRequest): Promise<ActionDefinition> {
    if ((given.pack ?? defaultPack) === protectedPack) throw packProtected()
    const checked = await checkActionDefinition(given, (name) => service.findRunnerType(name)?.runner_parameters)
    const problems = 'definition' in checked ? checked.warnings : checked.problems
    if ('definition' in checked && problems.length === 0) return checked.definition
    const [problem] = problems
    throw bodyInvalid(problem?.message ?? 'The action is invalid.', {
      problems: problems.slice(0, 10),
      path: problem === undefined ? [] : fieldOf(problem),
    })
  }

  /**
   * A permission for one action must not give access to others through shared files. Checks the files to write now, and
   * the files that the action names, because they can be read, and deleting the action may delete them.
   *
   * @param before the action so far
   * @throws PERMISSION_DENIED
   */
  async function authorizeFiles(
    { rights }: ActionCaller,
    record: ActionRecord,
    before: ActionRecord | undefined,
    folder: string,
    written: readonly string[],
  ): Promise<void> {
    const { id, pack } = record
    const others = store.ofPack(pack).filter((other) => other.id !== id)
    const ownersOf = (path: string): ActionRecord[] => others.filter((other) => filesOf(other).includes(path))
    const isThere = async (path: string): Promise<boolean> => (await problemOfContainedFile(folder, path)) !== 'missing'
    const had = before?.pack === pack ? namedBy(before) : new Set<string>()
    const [entryPoint] = entryPointOf(record)
    for (const path of written) {
      const isOwn = path === entryPoint && (had.has(path) || !(await isThere(path)))
      if (!isOwn) rights.require('action_modify', packResource(pack))
      for (const other of ownersOf(path)) rights.require('action_modify', actionResource(other.ref))
    }
    for (const path of namedBy(record)) {
      // A file that another action shares stays with that action.
      if (written.includes(path) || had.has(path) || ownersOf(path).length > 0 || !(await isThere(path))) continue
      rights.require('action_modify', packResource(pack))
    }
  }

  async function put(
    caller: ActionCaller,
    { record, before, step }: { record: ActionRecord; before?: ActionRecord; step: Step },
    dataFiles: readonly DataFile[],
  ): Promise<string[]> {
    const folder = service.folderOf(record.pack)
    await actionsFolder(record.pack, folder)
    const paths = dataFiles.map(({ file_path: path }) => pathInPack(path))
    await authorizeFiles(caller, record, before, folder ?? '', paths)
    const files = await writeFiles(record.pack, folder ?? '', dataFiles)
    const unit = merge({ steps: [step], facts: [], subject: record.id }, ...planWritten(planEvent, record.ref, files))
    await commitWithFiles(service, files, unit, `Action "${record.ref}"`)
    return paths
  }

  return {
    async create(caller, given) {
      const definition = await check(given)
      return withLock(definition.pack, async () => {
        const record = actionRecordOf(withMetadataFile(definition, undefined), newId())
        const same = store.findByRef(record.ref)
        if (same !== undefined) throw nameTaken(`Action "${record.ref}"`, same.id)
        const files = await put(caller, { record, step: store.insert(record) }, given.data_files ?? [])
        log.audit('action.created', `Action created. Action.id=${record.id}`, aboutAction(record, caller, { files }))
        return record
      })
    },

    async update(caller, refOrId, given, ifMatch) {
      const seen = service.get(refOrId)
      if (seen.pack === protectedPack) throw packProtected()
      const definition = await check({ ...given, pack: given.pack ?? seen.pack })
      return withLock(definition.pack, async () => {
        const before = service.get(seen.id)
        caller.rights.require('action_modify', actionResource(before.ref))
        if (ifMatch !== undefined && !isTagged(ifMatch, entityTagOf(before))) {
          throw contentChanged(`Action "${before.ref}"`)
        }
        const record = actionRecordOf(withMetadataFile(definition, before), before.id)
        if (record.ref !== before.ref) {
          caller.rights.require('action_create', actionResource(record.ref))
          const same = store.findByRef(record.ref)
          if (same !== undefined) throw nameTaken(`Action "${record.ref}"`, same.id)
        }
        const files = await put(caller, { record, before, step: store.update(record) }, given.data_files ?? [])
        log.audit('action.updated', `Action updated. Action.id=${record.id}`, aboutAction(record, caller, { files }))
        return record
      })
    },

    async delete(caller, refOrId, removesFiles) {
      const { id, pack } = service.get(refOrId)
      if (pack === protectedPack) throw packProtected()
      await withLock(pack, async () => {
        const action = service.get(id)
        caller.rights.require('action_delete', actionResource(action.ref))
        const shared = new Set(store.ofPack(action.pack).flatMap((other) => (other.id === id ? [] : filesOf(other))))
        const paths = removesFiles ? filesOf(action).filter((path) => !shared.has(path)) : []
        const folder = service.folderOf(action.pack)
        const files = paths.length === 0 ? nothing : await removeFiles(action.pack, folder ?? '', paths)
        const unit = { steps: [store.delete(id)], facts: [] }
        await commitWithFiles(service, files, unit, `Action "${action.ref}"`)
        log.audit('action.deleted', `Action deleted. Action.id=${id}`, aboutAction(action, caller, { files: paths }))
      })
    },
  }
}

const nothing: FileChange = { written: [], keep: () => Promise.resolve(), undo: () => Promise.resolve() }

/** Commits the unit, or restores the disk. @param what for the message of a conflict: `Action "core.local"` */
export async function commitWithFiles(
  service: Pick<ActionService, 'commit'>,
  files: FileChange,
  unit: Unit,
  what: string,
): Promise<void> {
  try {
    await service.commit(unit)
  } catch (error) {
    await files.undo()
    if (error instanceof Conflict) throw conflict(what)
    throw error
  }
  await files.keep()
}

/** The trigger instances of files that were written, if rules want them. */
export function planWritten(planEvent: PlanEvent, ref: string, { written }: FileChange): (Unit | undefined)[] {
  const host_info = { hostname: hostname() }
  return written.map((file_path) => planEvent(writtenRef, { ref, file_path, host_info }))
}

/** Metadata file and entry point, relative to the pack; files outside its `actions` folder are omitted. */
export function filesOf(action: ActionRecord): string[] {
  const { metadata_file: metadata } = action
  return [...(metadata === undefined ? [] : [metadata]), ...entryPointOf(action)].filter((path) =>
    path.startsWith('actions/'),
  )
}

/** Relative to the pack. */
function entryPointOf({ entry_point: path }: ActionRecord): string[] {
  const file = path === '' ? undefined : entryPointFile('actions', path)
  return file === undefined ? [] : [file]
}

/** Those of them that lie elsewhere in the pack too. */
const namedBy = (action: ActionRecord): ReadonlySet<string> => new Set([...filesOf(action), ...entryPointOf(action)])

/** Keeps the metadata file of an action when the request does not name it. @throws DATA_FILE_INVALID */
function withMetadataFile(definition: ActionDefinition, before: ActionRecord | undefined): ActionDefinition {
  const { metadata_file: given, ...rest } = definition
  const kept = before?.pack === definition.pack ? before.metadata_file : undefined
  const metadataFile = given === undefined ? kept : pathInPack(given)
  return metadataFile === undefined ? rest : { ...rest, metadata_file: metadataFile }
}

export function aboutAction({ id, ref }: ActionRecord, caller: Caller, { files }: { files: string[] }): LogFields {
  return { ...aboutCaller(caller), action_id: id, action: ref, ...(files.length === 0 ? {} : { files }) }
}
