/**
 * Every error that a client can see: one factory per message, grouped by area in `errors/`.
 *
 * To add one: list its code in `errors/codes.ts`, write a factory in the file of its area, run `npm run generate`.
 */
export { AppError, isAppError, within, withSentence } from './errors/app-error.ts'
export { errorCodes, httpStatusOf, type ErrorCode, type ErrorKind } from './errors/codes.ts'
export * from './errors/authentication.ts'
export * from './errors/content.ts'
export * from './errors/datastore.ts'
export * from './errors/events.ts'
export * from './errors/executions.ts'
export * from './errors/notifications.ts'
export * from './errors/packs.ts'
export * from './errors/permissions.ts'
export * from './errors/requests.ts'
export * from './errors/storage.ts'
export * from './errors/workflows.ts'
