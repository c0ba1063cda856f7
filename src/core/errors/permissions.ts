/** Errors of permissions and role definitions. */
import { shown } from '../../lib/text/index.ts'
import { AppError } from './app-error.ts'

export const permissionDenied = (message: string): AppError => new AppError('PERMISSION_DENIED', message)

/** @param uid of the resource, if the permission is about one */
export const permissionMissing = (user: string, permission: string, uid?: string): AppError =>
  permissionLacked(`User "${shown(user)}" doesn't have required permission`, permission, uid)

/**
 * The user has the permission, but its credential's scopes do not include it. @param uid of the resource, if the
 * permission is about one
 */
export const scopeMissing = (user: string, permission: string, uid?: string): AppError =>
  permissionLacked(`The scopes of the API key of user "${shown(user)}" lack permission`, permission, uid)

const permissionLacked = (lack: string, permission: string, uid: string | undefined): AppError =>
  new AppError(
    'PERMISSION_DENIED',
    `${lack} "${permission}"${uid === undefined ? '' : ` on resource "${shown(uid)}"`}`,
    { details: { permission, ...(uid === undefined ? {} : { resource: shown(uid) }) } },
  )

export const isolationDenied = (user: string, uid: string): AppError =>
  new AppError(
    'PERMISSION_DENIED',
    `User "${shown(user)}" doesn't have access to resource "${shown(uid)}" due to resource permission isolation.`,
  )

export const administratorRequired = (): AppError => new AppError('PERMISSION_DENIED', 'Administrator access required')

export const administratorOrSelfRequired = (): AppError =>
  new AppError('PERMISSION_DENIED', 'Administrator or self access required')

export const accessControlOff = (): AppError =>
  new AppError('ACCESS_CONTROL_OFF', 'Access control is off (rbac.enable), so definitions cannot be applied.')

const MAX_SHOWN_PROBLEMS = 100

/** @param problems each with its file */
export const definitionsInvalid = (problems: readonly string[]): AppError => {
  const more = problems.length - MAX_SHOWN_PROBLEMS
  const listed = [...problems.slice(0, MAX_SHOWN_PROBLEMS), ...(more > 0 ? [`and ${more} more`] : [])]
  return new AppError('DEFINITIONS_INVALID', `Nothing was applied: ${listed.join('; ')}`, {
    details: { problems: listed },
  })
}

export const resourceTypeUnknown = (type: string): AppError =>
  new AppError('RESOURCE_TYPE_UNKNOWN', `Invalid resource type: ${shown(type)}`)
