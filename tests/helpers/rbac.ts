/** Definitions of access control as files, written before a server starts (contract 11). */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Grant {
  types: readonly string[]
  /** Uid of a resource; without one the grant is for permissions that need none. */
  on?: string
}

export interface RbacFiles {
  /** Writes a role, and assigns it to the user of the same name. */
  readonly define: (role: string, grants: readonly Grant[]) => void
  readonly assign: (user: string, role: string) => void
}

/** Makes the folders below the base path of a server. */
export function createRbacFiles(basePath: string): RbacFiles {
  const folder = join(basePath, 'rbac')
  for (const name of ['roles', 'assignments']) mkdirSync(join(folder, name), { recursive: true })

  function assign(user: string, role: string): void {
    writeFileSync(join(folder, 'assignments', `${user}.yaml`), `username: ${user}\nroles: [${role}]\n`)
  }

  return {
    assign,
    define(role, grants) {
      const items = grants.map(
        ({ types, on }) =>
          `  - permission_types: [${types.join(', ')}]\n${on === undefined ? '' : `    resource_uid: '${on}'\n`}`,
      )
      const list = items.length === 0 ? 'permission_grants: []\n' : `permission_grants:\n${items.join('')}`
      writeFileSync(join(folder, 'roles', `${role}.yaml`), `name: ${role}\n${list}`)
      assign(role, role)
    },
  }
}
