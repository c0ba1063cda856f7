/** `svc role`, `svc role-assignment`: roles and their assignments (contract 11, 11.7). */
import { CliCommand } from '../command.ts'
import { createGetCommand, createListCommand, type ListFlags, type CliResource } from '../resources.ts'
import type { CommandContext } from '../session.ts'

export const role: CliResource = {
  name: 'Role',
  pluralName: 'Roles',
  path: '/rbac/roles',
  columns: ['id', 'name', 'system', 'description'],
  order: ['id', 'name', 'description', 'system', 'permission_grant_objects', 'permission_grant_ids'],
}

export const roleAssignment: CliResource = {
  name: 'Role Assignment',
  pluralName: 'Role Assignments',
  path: '/rbac/role_assignments',
  columns: ['id', 'role', 'user', 'is_remote', 'source', 'description'],
  order: ['id', 'user', 'role', 'is_remote', 'source', 'description'],
}

interface RoleListFlags extends ListFlags {
  system?: boolean
}

interface AssignmentListFlags extends ListFlags {
  role?: string
  user?: string
  source?: string
  remote?: boolean
}

export function createRoleCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, role, ({ system }: RoleListFlags) => ({ system }))
    .description('List roles. Administrators only.')
    .option('-s, --system', 'only built-in roles')
    .examples('svc role list -s')

  const get = createGetCommand(context, role, '<name-or-id...>', 'names or ids')
    .description('Show roles with the permissions they grant.')
    .examples('svc role get observer')

  return new CliCommand('role').addCommand(list).addCommand(get)
}

export function createRoleAssignmentCommand(context: CommandContext): CliCommand {
  const queryOf = ({ role: name, user, source, remote }: AssignmentListFlags) => ({ role: name, user, source, remote })
  const list = createListCommand(context, roleAssignment, queryOf)
    .description('List role assignments. Without administrator rights, list your own with -u.')
    .option('-r, --role <role>', 'only assignments of this role')
    .option('-u, --user <user>', 'only assignments of this user')
    .option('-s, --source <source>', 'only assignments from this source, such as assignments/ops.yaml or API')
    .option('--remote', 'only assignments from groups of the authentication backend')
    .notes('Assignment files define who has which role; see `svc help rbac apply`.')
    .examples('svc role-assignment list -u alice')

  const get = createGetCommand(context, roleAssignment, '<id...>', 'ids')
    .description('Show role assignments.')
    .examples('svc role-assignment get 6000000000000000000000aa')

  return new CliCommand('role-assignment').addCommand(list).addCommand(get)
}
