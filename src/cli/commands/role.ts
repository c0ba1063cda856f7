/** `svc role`, `svc role-assignment`: who may do what (contract 11, 11.7). */
import { Command } from 'commander'
import { createCommand } from '../options.ts'
import { createGetCommand, createListCommand, type ListFlags, type Resource } from '../resources.ts'
import type { CommandContext } from '../session.ts'

export const role: Resource = {
  name: 'Role',
  pluralName: 'Roles',
  path: '/rbac/roles',
  columns: ['id', 'name', 'system', 'description'],
  order: ['id', 'name', 'description', 'system', 'permission_grant_objects', 'permission_grant_ids'],
}

export const roleAssignment: Resource = {
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

export function createRoleCommand(context: CommandContext): Command {
  const list = createListCommand(context, role, ({ system }: RoleListFlags) => ({ system }))
    .description('List roles. Who is no administrator may not.')
    .option('-s, --system', 'only those that are built in')
    .addHelpText('after', '\nExample:\n  svc role list -s')

  const get = createGetCommand(context, role, '<name-or-id...>', 'names or ids')
    .description('Show roles with the permissions they grant.')
    .addHelpText('after', '\nExample:\n  svc role get observer')

  return createCommand(new Command('role'))
    .description('List and show roles. They are defined in files; see "svc rbac apply".')
    .addCommand(list)
    .addCommand(get)
}

export function createRoleAssignmentCommand(context: CommandContext): Command {
  const queryOf = ({ role: name, user, source, remote }: AssignmentListFlags) => ({ role: name, user, source, remote })
  const list = createListCommand(context, roleAssignment, queryOf)
    .description('List which users have which roles. Who is no administrator may ask with -u for the own ones.')
    .option('-r, --role <role>', 'only of this role')
    .option('-u, --user <user>', 'only of this user')
    .option('-s, --source <source>', 'only from this source, such as assignments/ops.yaml or API')
    .option('--remote', 'only those that come from groups of the authentication backend')
    .addHelpText('after', '\nExample:\n  svc role-assignment list -u alice')

  const get = createGetCommand(context, roleAssignment, '<id...>', 'ids')
    .description('Show assignments of roles.')
    .addHelpText('after', '\nExample:\n  svc role-assignment get 6000000000000000000000aa')

  return createCommand(new Command('role-assignment'))
    .description('List and show which users have which roles.')
    .addCommand(list)
    .addCommand(get)
}
