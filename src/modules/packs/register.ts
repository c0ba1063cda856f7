/** Making what a pack folder holds known to the modules that own each kind of content. */
import { problemAt } from '../../metadata.ts'
import type { Actions } from '../actions/index.ts'
import { readPack, type PackProblem } from './read.ts'

export interface PackRegistration {
  /** Undefined when the manifest cannot be used, or a folder of the pack cannot be read. */
  ref: string | undefined
  actions: number
  /** Actions that lost their record, because their metadata file is gone. */
  actionsRemoved: number
  problems: PackProblem[]
}

/** Registers everything usable in a pack folder; doing it again changes only what changed in the folder. */
export async function registerPack(actions: Actions, folder: string): Promise<PackRegistration> {
  const content = await readPack(folder)
  if (!('ref' in content)) return { ref: undefined, actions: 0, actionsRemoved: 0, problems: content.problems }

  actions.usePackFolder(content.ref, content.folder)
  const registration = await actions.registerActions({
    pack: content.ref,
    definitions: content.actions.map(({ path, document }) => ({ metadataFile: path, definition: document.value })),
    metadataFiles: content.actionPaths,
  })
  const documents = new Map(content.actions.map(({ path, document }) => [path, document]))
  const problems = registration.problems.map(({ metadataFile, path, message }) =>
    problemAt(metadataFile, path, (keys) => documents.get(metadataFile)?.lineOf(keys), message),
  )
  return {
    ref: content.ref,
    actions: registration.registered,
    actionsRemoved: registration.removed,
    problems: [...content.problems, ...problems],
  }
}
