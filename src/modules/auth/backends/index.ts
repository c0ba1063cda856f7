/** Authentication backends. To add one, add a file and a line here. */
import type { JsonObject } from '../../../config/index.ts'
import { BackendProblem, type AuthBackend, type BackendContext, type BackendType } from './backend.ts'
import { flatFile } from './flat-file.ts'
import { ldap } from './ldap.ts'
import { pam } from './pam.ts'

const backends = [flatFile, ldap, pam] as const satisfies readonly BackendType[]

/** @throws BackendProblem if there is no such backend, or its arguments cannot be used */
export async function createBackend(name: string, kwargs: JsonObject, context: BackendContext): Promise<AuthBackend> {
  const type = backends.find((backend) => backend.name === name)
  if (type === undefined) {
    const names = backends.map((backend) => backend.name).join(', ')
    throw new BackendProblem(`auth.backend: no authentication backend is named "${name}"; available: ${names}`)
  }
  return type.create(kwargs, context)
}
