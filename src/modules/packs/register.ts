/** Making what a pack folder holds known to the modules that own each kind of content. */
import { problemAt } from '../../metadata.ts'
import type { PackDefinitions, Registration } from '../../pack-content.ts'
import type { Actions } from '../actions/index.ts'
import type { Rules } from '../rules/index.ts'
import type { Triggers } from '../triggers/index.ts'
import { contentKinds, readPack, type ContentKind, type PackContent, type PackProblem } from './read.ts'

export interface PackRegistration {
  /** Undefined when the manifest cannot be used, or a folder of the pack cannot be read. */
  ref: string | undefined
  registered: Record<ContentKind, number>
  /** What has lost its record, because its metadata file is gone. */
  removed: Record<ContentKind, number>
  problems: PackProblem[]
}

export interface ContentOwners {
  triggers: Pick<Triggers, 'registerTypes'>
  actions: Pick<Actions, 'registerActions' | 'usePackFolder'>
  rules: Pick<Rules, 'registerRules'>
}

/**
 * Registers everything usable in a pack folder; doing it again changes only what changed in the folder.
 *
 * @param areOurs see `registerActions`
 */
export async function registerPack(owners: ContentOwners, folder: string, areOurs = false): Promise<PackRegistration> {
  const content = await readPack(folder)
  if (!('ref' in content))
    return { ref: undefined, registered: counts(), removed: counts(), problems: content.problems }

  owners.actions.usePackFolder(content.ref, content.folder)
  const types = definitionsOf(content, 'triggers')
  const first = await owners.triggers.registerTypes(types)
  const actions = await owners.actions.registerActions(definitionsOf(content, 'actions'), areOurs)
  const rules = await owners.rules.registerRules(definitionsOf(content, 'rules'))
  // A trigger type stays while rules use it, and these have gone only now.
  const triggers = rules.removed > 0 && first.problems.length > 0 ? await again(owners, types, first) : first

  const registrations = { triggers, actions, rules }
  const problems = [...content.problems]
  const [registered, removed] = [counts(), counts()]
  for (const kind of contentKinds) {
    const registration = registrations[kind]
    registered[kind] = registration.registered
    removed[kind] = registration.removed
    problems.push(...problemsOf(content, kind, registration))
  }
  return { ref: content.ref, registered, removed, problems }
}

function counts(): Record<ContentKind, number> {
  return { triggers: 0, actions: 0, rules: 0 }
}

async function again(owners: ContentOwners, types: PackDefinitions, first: Registration): Promise<Registration> {
  const second = await owners.triggers.registerTypes(types)
  return { ...second, removed: first.removed + second.removed }
}

function definitionsOf(content: PackContent, kind: ContentKind): PackDefinitions {
  const { files, paths } = content[kind]
  return {
    pack: content.ref,
    definitions: files.map(({ path, document }) => ({ metadataFile: path, definition: document.value })),
    metadataFiles: paths,
  }
}

function problemsOf(content: PackContent, kind: ContentKind, { problems }: Registration): PackProblem[] {
  const documents = new Map(content[kind].files.map(({ path, document }) => [path, document]))
  return problems.map(({ metadataFile, path, message }) =>
    problemAt(metadataFile, path, (keys) => documents.get(metadataFile)?.lineOf(keys), message),
  )
}
