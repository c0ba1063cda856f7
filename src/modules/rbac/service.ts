/** Applying the definition files, and the roles that groups bring. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Conflict, type Database } from '../../db/index.ts'
import type { Log, LogFields } from '../../lib/log/index.ts'
import { describeProblem, shown } from '../../lib/text/index.ts'
import { createSecretFile, describeFileError, makeFolder } from '../../lib/files/index.ts'
import { hasCode } from '../../lib/process/index.ts'
import { planApply, planSync, planSystemRoles } from './apply.ts'
import { definitionFolders, readDefinitions } from './definitions.ts'
import type { RbacStore } from './store.ts'
import { administratorRoles } from './system-roles.ts'
import type { Applied, RoleAssignment } from './types.ts'
import { writeJson } from '../../lib/json/index.ts'

export interface RbacService {
  /** Folders, system roles, and what the files say. @throws Error with everything that is wrong with the files */
  start(): Promise<void>
  /**
   * Makes the rows say what the files say: all of it, or nothing if anything is wrong with them.
   *
   * @param about who asks for it, for the audit lines
   */
  apply(about: LogFields): Promise<{ applied: Applied } | { problems: string[] }>
  /** See `Rbac.syncGroups`. */
  syncGroups(user: string, groups: readonly string[]): Promise<void>
  /** See `Rbac.ensureAdministrator`. */
  ensureAdministrator(findFirst: () => Promise<string | undefined>): Promise<void>
}

export interface RbacServiceOptions {
  database: Database
  store: RbacStore
  log: Log
  /** Absolute. */
  folder: string
  /** `rbac.sync_remote_groups` */
  countsGroups: boolean
}

const FIRST_ASSIGNMENT = 'admin.yaml'
/** Two logins of one user at the same time; a third one finds that nothing is left to do. */
const MAX_TRIES = 3

export function createRbacService(options: RbacServiceOptions): RbacService {
  const { database, store, log, folder, countsGroups } = options
  /** First start with access control and without definition files. */
  let isNew = false
  let last: Promise<unknown> = Promise.resolve()

  /** No other write may change the rows between planning and applying. */
  function withLock<T>(work: () => Promise<T>): Promise<T> {
    const turn = last.then(work)
    last = turn.catch(() => undefined)
    return turn
  }

  function auditAssignments(created: RoleAssignment[], removed: RoleAssignment[], about: LogFields): void {
    const fieldsOf = ({ user, role, source }: RoleAssignment): LogFields => ({ ...about, owner: user, role, source })
    for (const each of removed) {
      const message = `Role "${shown(each.role)}" is taken from "${shown(each.user)}".`
      log.audit('role_assignment.removed', message, fieldsOf(each))
    }
    for (const each of created) {
      const message = `Role "${shown(each.role)}" is given to "${shown(each.user)}".`
      log.audit('role_assignment.created', message, fieldsOf(each))
    }
  }

  async function applyNow(about: LogFields): ReturnType<RbacService['apply']> {
    const { definitions, problems, isEmpty } = await readDefinitions(folder)
    if (problems.length > 0) return { problems: problems.map(describeProblem) }
    isNew &&= isEmpty
    if (!isNew) await makeSystemRoles()
    const { steps, applied, created, removed } = planApply(store, definitions)
    if (steps.length > 0) {
      await database.write({ steps, facts: [{ name: 'rbac.changed', payload: { reason: 'definitions applied' } }] })
    }
    log.audit('rbac.definitions_applied', describeCounts(applied), { ...about, ...applied })
    auditAssignments(created, removed, about)
    return { applied }
  }

  async function syncNow(user: string, groups: readonly string[]): Promise<void> {
    for (let tries = 1; ; tries++) {
      const { steps, created, removed } = planSync(store, user, groups)
      if (steps.length === 0) return
      try {
        await database.write({ steps, facts: [{ name: 'rbac.changed', payload: { reason: 'groups synchronised' } }] })
        auditAssignments(created, removed, { user })
        return
      } catch (error) {
        if (!(error instanceof Conflict) || tries === MAX_TRIES) throw error
      }
    }
  }

  function isAnybodyAdministrator(): boolean {
    if (store.isAnyAssigned(administratorRoles)) return true
    return (
      countsGroups &&
      store.mappings().some(({ enabled, roles }) => enabled && roles.some((role) => administratorRoles.includes(role)))
    )
  }

  /** @returns false if the write failed, or the file exists */
  async function writeFirstAssignment(path: string, user: string): Promise<boolean> {
    try {
      return await createSecretFile(path, describeFirstAssignment(user))
    } catch (error) {
      log.warning('rbac.assignment_not_written', `${path} cannot be written`, { error })
      return false
    }
  }

  async function findAdministrator(findFirst: () => Promise<string | undefined>): Promise<void> {
    if (isAnybodyAdministrator()) return
    const user = isNew ? await findFirst() : undefined
    const path = join(folder, 'assignments', FIRST_ASSIGNMENT)
    if (user !== undefined && (await writeFirstAssignment(path, user))) {
      await withLock(() => applyNow({}))
      const message = `"${user}" is the administrator, because ${path} says so; other users have no permissions until files assign roles to them`
      log.warning('rbac.first_administrator', message)
      return
    }
    warnOfNoAdministrator()
  }

  function warnOfNoAdministrator(): void {
    log.warning(
      'rbac.no_administrator',
      `There is no administrator. Write a file such as ${join(folder, 'assignments', 'NAME.yaml')} with the lines "username: NAME" and "roles: [system_admin]", then send SIGHUP to the server.`,
    )
  }

  /** Only at the first start: later, those that are missing are empty. */
  async function makeDefinitionFolders(): Promise<void> {
    try {
      const isMade = (await stat(folder).catch(unlessMissing))?.isDirectory()
      if (isMade !== true) for (const name of definitionFolders) await makeFolder(join(folder, name))
    } catch (error) {
      throw new Error(
        `rbac in system.base_path: ${folder} cannot be used: ${describeFileError(folder, error)}. Make it a directory for role definitions, or turn off rbac.enable.`,
        { cause: error },
      )
    }
  }

  async function makeSystemRoles(): Promise<void> {
    const steps = planSystemRoles(store)
    if (steps.length > 0) await database.write({ steps, facts: [] })
  }

  return {
    async start() {
      isNew = store.countRoles(true) === 0
      await makeDefinitionFolders()
      const result = await withLock(() => applyNow({}))
      if ('problems' in result) {
        throw new Error([`The definition files in ${folder} cannot be used:`, ...result.problems].join('\n  '))
      }
    },
    async apply(about) {
      const result = await withLock(() => applyNow(about))
      if ('applied' in result && !isAnybodyAdministrator()) warnOfNoAdministrator()
      return result
    },
    syncGroups: (user, groups) => withLock(() => syncNow(user, groups)),
    async ensureAdministrator(findFirst) {
      await findAdministrator(findFirst)
      // Only now: they tell the next start that it is not the first, and one that failed before this was none.
      await makeSystemRoles()
    },
  }
}

function describeCounts(applied: Applied): string {
  const parts = Object.entries(applied).map(
    ([name, { created, updated, removed }]: [string, Applied['roles']]) =>
      `${name} ${created} created, ${updated} updated, ${removed} removed`,
  )
  return `Role definitions applied: ${parts.join('; ')}.`
}

function unlessMissing(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT')) throw error
}

function describeFirstAssignment(user: string): string {
  return [
    '# Written at the first start with access control: the account that this server has made is its administrator.',
    '# Give other users roles with files like this one; with another system_admin this file may go.',
    `username: ${writeJson(user)}`,
    'roles:',
    '  - system_admin',
    '',
  ].join('\n')
}
