/** Roles that exist without a file and that no file can change (contract 11, 11.1). */

export const systemRoles = [
  {
    name: 'system_admin',
    description: 'Everything, for the first administrator of an installation; only its definition file takes it away.',
  },
  { name: 'admin', description: 'Everything.' },
  { name: 'observer', description: 'Views, lists and searches everything, and changes nothing.' },
] as const

export function isSystemRole(name: string): boolean {
  return systemRoles.some((role) => role.name === name)
}

export const administratorRoles: readonly string[] = ['system_admin', 'admin']

export const observerRole = 'observer'
