/** Reading the definition files of roles, assignments and group mappings (contract 11, 11.6). */
import { MAX_USER_CHARACTERS } from '../../core/account-rules.ts'
import {
  listFiles,
  problemAt,
  readMetadataFile,
  refuseWarnings,
  type FileProblem,
  type MetadataDocument,
  shown,
} from '../../lib/text/index.ts'
import { compileSchema, isObject, type JsonSchema } from '../../lib/schema/index.ts'
import { isSystemRole, systemRoles } from './system-roles.ts'
import type { AssignmentDefinition, Definitions, GrantDefinition, MappingDefinition, RoleDefinition } from './types.ts'
import { globalPermissions, isGlobalPermission, isPermission, problemOfGrant } from '../../core/permissions.ts'

const MAX_FILES = 10_000
const MAX_FILE_BYTES = 262_144
/** Of all files together. */
const MAX_BYTES = 16_777_216
const MAX_NAME_CHARS = 255

export const definitionFolders = ['roles', 'assignments', 'mappings'] as const

type Folder = (typeof definitionFolders)[number]

const kinds: Readonly<Record<Folder, string>> = {
  roles: 'Role definition',
  assignments: 'User role assignment',
  mappings: 'Group mapping',
}

const name: JsonSchema = { type: 'string', minLength: 1, maxLength: MAX_NAME_CHARS }
const common: Record<string, JsonSchema> = {
  description: { type: ['string', 'null'] },
  enabled: { type: 'boolean' },
}
const roleNames: JsonSchema = { type: 'array', items: name }

const schemas: Readonly<Record<Folder, JsonSchema>> = {
  roles: {
    type: 'object',
    required: ['name'],
    properties: {
      ...common,
      name,
      permission_grants: {
        type: ['array', 'null'],
        items: {
          type: 'object',
          required: ['permission_types'],
          properties: {
            resource_uid: { type: ['string', 'null'], minLength: 1, maxLength: 1024 },
            permission_types: { type: 'array', items: { type: 'string' } },
          },
          additionalProperties: false,
        },
      },
    },
    additionalProperties: false,
  },
  assignments: {
    type: 'object',
    required: ['username', 'roles'],
    properties: { ...common, username: { ...name, maxLength: MAX_USER_CHARACTERS }, roles: roleNames },
    additionalProperties: false,
  },
  mappings: {
    type: 'object',
    required: ['group', 'roles'],
    properties: { ...common, group: { type: 'string', minLength: 1, maxLength: 4096 }, roles: roleNames },
    additionalProperties: false,
  },
}

interface DefinitionFile<T> {
  path: string
  lineOf: MetadataDocument['lineOf']
  value: T
}

// What fits the schemas.
interface Common {
  description?: string | null
  enabled?: boolean
}
interface RoleFile extends Common {
  name: string
  permission_grants?: { resource_uid?: string | null; permission_types: string[] }[] | null
}
interface AssignmentFile extends Common {
  username: string
  roles: string[]
}
interface MappingFile extends Common {
  group: string
  roles: string[]
}

export interface DefinitionsRead {
  definitions: Definitions
  /** All there are; with any, the definitions must not be used. */
  problems: FileProblem[]
  /** There are no definition files. */
  isEmpty: boolean
}

/** Reads everything below the folder, in the order of file names. Missing folders are empty ones. */
export async function readDefinitions(folder: string): Promise<DefinitionsRead> {
  const reader = createReader(folder)
  const roleFiles = await reader.read<RoleFile>('roles')
  const assignmentFiles = await reader.read<AssignmentFile>('assignments')
  const mappingFiles = await reader.read<MappingFile>('mappings')
  const { problems } = reader

  for (const file of roleFiles) checkRole(file, problems)
  refuseDuplicates(roleFiles, ({ name: role }) => role, { what: 'role', key: 'name' }, problems)
  refuseDuplicates(assignmentFiles, ({ username }) => username, { what: 'user', key: 'username' }, problems)
  const known = new Set([
    ...systemRoles.map((role) => role.name),
    ...roleFiles.map(({ value }) => value.name),
    ...reader.faultyRoles,
  ])
  for (const file of [...assignmentFiles, ...mappingFiles]) checkRoleNames(file, known, problems)

  return {
    definitions: {
      roles: roleFiles.map(({ value }) => toRole(value)),
      assignments: assignmentFiles.map(toAssignment),
      // The later file of a group replaces the earlier one.
      mappings: [...new Map(mappingFiles.map((file) => [file.value.group, toMapping(file)])).values()],
    },
    problems,
    isEmpty: reader.fileCount === 0,
  }
}

interface Reader {
  /** Files that fit their schema; disabled ones only of mappings, which are kept. */
  read<T>(folder: Folder): Promise<DefinitionFile<T>[]>
  readonly problems: FileProblem[]
  readonly fileCount: number
  /** Named by files that do not fit the schema: assigning them is not wrong as well. */
  readonly faultyRoles: ReadonlySet<string>
}

function createReader(root: string): Reader {
  const problems: FileProblem[] = []
  const faultyRoles = new Set<string>()
  let fileCount = 0
  let bytesLeft = MAX_BYTES

  async function readOne(folder: Folder, path: string): Promise<MetadataDocument | undefined> {
    const file = await readMetadataFile(root, path, MAX_FILE_BYTES)
    if ('problem' in file) {
      problems.push(file.isEmpty ? { file: path, message: describeEmpty(folder, path) } : file.problem)
      return undefined
    }
    const strict = refuseWarnings(file.document)
    if ('problem' in strict) {
      problems.push({ file: path, ...strict.problem })
      return undefined
    }
    const { value, lineOf } = file.document
    if (isNothing(value)) {
      problems.push({ file: path, message: describeEmpty(folder, path) })
      return undefined
    }
    // Disabled definitions are not checked.
    if (folder !== 'mappings' && isObject(value) && value['enabled'] === false) return undefined
    bytesLeft -= file.bytes
    const problem = compileSchema(schemas[folder]).find(value)
    if (problem === undefined) return file.document
    problems.push(problemAt(path, problem.path, lineOf, problem.message))
    if (folder === 'roles' && isObject(value) && typeof value['name'] === 'string') faultyRoles.add(value['name'])
    return undefined
  }

  return {
    problems,
    faultyRoles,
    get fileCount() {
      return fileCount
    },
    async read<T>(folder: Folder) {
      const names = (await listFiles(root, folder, problems))?.filter((file) => /\.ya?ml$/.test(file)) ?? []
      fileCount += names.length
      if (names.length > MAX_FILES) {
        problems.push({ file: folder, message: `there are more than ${MAX_FILES} definition files` })
        return []
      }
      const files: DefinitionFile<T>[] = []
      for (const file of names) {
        const path = `${folder}/${file}`
        const document = await readOne(folder, path)
        if (bytesLeft < 0) {
          problems.push({ file: path, message: `all definition files together are larger than ${MAX_BYTES} bytes` })
          break
        }
        if (document !== undefined) {
          files.push({ path, lineOf: document.lineOf, value: document.value as T }) // has passed its schema
        }
      }
      return files
    },
  }
}

function isNothing(value: unknown): boolean {
  return value === null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0)
}

function describeEmpty(folder: Folder, path: string): string {
  return `${kinds[folder]} file "${path}" is empty and invalid`
}

function checkRole({ path, lineOf, value }: DefinitionFile<RoleFile>, problems: FileProblem[]): void {
  if (isSystemRole(value.name)) {
    const message = `"${value.name}" is a system role, which cannot be defined; use another name`
    problems.push(problemAt(path, ['name'], lineOf, message))
  }
  for (const [i, { resource_uid: uid, permission_types: types }] of (value.permission_grants ?? []).entries()) {
    const seen = new Set<string>()
    for (const [k, type] of types.entries()) {
      const message = typeof uid === 'string' ? problemOfGrant(type, uid) : problemOfGlobal(type)
      // A wrong resource is as wrong for each of its permission types.
      if (message === undefined || seen.has(message)) continue
      seen.add(message)
      problems.push(problemAt(path, ['permission_grants', String(i), 'permission_types', String(k)], lineOf, message))
    }
  }
}

function problemOfGlobal(type: string): string | undefined {
  if (isPermission(type) && isGlobalPermission(type)) return undefined
  return `Invalid permission type "${shown(type)}". Valid global permission types which can be used without a resource id are: ${globalPermissions.join(', ')}`
}

function refuseDuplicates<T>(
  files: DefinitionFile<T>[],
  nameOf: (value: T) => string,
  { what, key }: { what: string; key: string },
  problems: FileProblem[],
): void {
  const first = new Map<string, string>()
  for (const { path, lineOf, value } of files) {
    const name = nameOf(value)
    const other = first.get(name)
    if (other === undefined) {
      first.set(name, path)
      continue
    }
    const message = `Duplicate definition file found for ${what} "${shown(name)}": ${other} defines it already`
    problems.push(problemAt(path, [key], lineOf, message))
  }
}

function checkRoleNames(
  { path, lineOf, value }: DefinitionFile<{ roles: string[] }>,
  known: ReadonlySet<string>,
  problems: FileProblem[],
): void {
  for (const [i, role] of value.roles.entries()) {
    if (known.has(role)) continue
    const message = `Role "${shown(role)}" does not exist: no enabled file in roles/ defines it`
    problems.push(problemAt(path, ['roles', String(i)], lineOf, message))
  }
}

function toRole({ name: role, description, permission_grants: grants }: RoleFile): RoleDefinition {
  return {
    name: role,
    description: description ?? '',
    grants: (grants ?? []).map(({ resource_uid: uid, permission_types: types }): GrantDefinition => ({
      ...(typeof uid === 'string' ? { resource_uid: uid } : {}),
      permission_types: [...new Set(types)],
    })),
  }
}

function toAssignment({ path, value }: DefinitionFile<AssignmentFile>): AssignmentDefinition {
  return {
    user: value.username,
    roles: [...new Set(value.roles)],
    description: value.description ?? '',
    source: path,
  }
}

function toMapping({ path, value }: DefinitionFile<MappingFile>): MappingDefinition {
  return {
    group: value.group,
    roles: [...new Set(value.roles)],
    description: value.description ?? '',
    enabled: value.enabled ?? true,
    source: path,
  }
}
