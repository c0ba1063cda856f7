/** Errors of actions, aliases and policies. */
import { shown } from '../../lib/text/index.ts'
import { AppError } from './app-error.ts'

// Actions

export const parametersInvalid = (message: string, details?: Record<string, unknown>): AppError =>
  new AppError('PARAMETERS_INVALID', message, details === undefined ? {} : { details })

export const actionUnknown = (ref: string): AppError =>
  new AppError('ACTION_UNKNOWN', `Action "${shown(ref)}" cannot be found.`, { details: { path: ['action'] } })

export const entryPointNotFound = (ref: string, why: string): AppError =>
  new AppError('ENTRY_POINT_NOT_FOUND', `The entry point of action "${shown(ref)}" cannot be read: ${why}`)

export const actionExists = (ref: string): AppError =>
  new AppError('ACTION_EXISTS', `The requested destination action "${shown(ref)}" already exists.`)

export const actionDisabled = (ref: string): AppError =>
  new AppError('ACTION_DISABLED', `Unable to execute. Action "${shown(ref)}" is disabled.`)

export const templateFailed = (parameter: string, why: string): AppError =>
  new AppError('TEMPLATE_FAILED', `Failed to render parameter "${shown(parameter)}": ${why}`, {
    details: { path: ['parameters', parameter] },
  })

// Aliases

export const aliasUnknown = (name: string): AppError =>
  new AppError('ALIAS_UNKNOWN', `Unable to identify action alias with name "${shown(name)}".`, {
    details: { path: ['name'] },
  })

export const aliasAmbiguous = (name: string, refs: string): AppError =>
  new AppError('ALIAS_AMBIGUOUS', `Several action aliases have the name "${shown(name)}": ${refs}.`, {
    details: { path: ['name'] },
  })

export const aliasDisabled = (name: string): AppError =>
  new AppError('ALIAS_DISABLED', `Action alias with name "${shown(name)}" is disabled.`)

export const formatUnknown = (format: string, name: string): AppError =>
  new AppError('FORMAT_UNKNOWN', `Format string "${shown(format)}" is not available on the alias "${shown(name)}".`, {
    details: { path: ['format'] },
  })

export const commandUnfit = (command: string, format: string): AppError =>
  new AppError('COMMAND_UNMATCHED', `Command "${shown(command)}" doesn't match format string "${shown(format)}".`, {
    details: { path: ['command'] },
  })

export const commandWithoutValue = (): AppError =>
  new AppError('COMMAND_UNMATCHED', 'No value supplied and no default value found.', { details: { path: ['command'] } })

export const commandUnmatched = (command: string): AppError =>
  new AppError('COMMAND_UNMATCHED', `Command '${shown(command)}' matched no patterns.`, {
    details: { path: ['command'] },
  })

/** @param formats with their aliases */
export const commandAmbiguous = (command: string, formats: string, multiple: boolean): AppError =>
  new AppError(
    'COMMAND_AMBIGUOUS',
    `Command '${shown(command)}' matched more than 1 ${multiple ? '(multi) ' : ''}pattern: ${formats}.`,
    { details: { path: ['command'] } },
  )

export const commandRefused = (why: string): AppError =>
  new AppError('COMMAND_UNMATCHED', `${why.charAt(0).toUpperCase()}${why.slice(1)}.`, {
    details: { path: ['command'] },
  })

// Policies

export const policyTypeUnknown = (message: string): AppError => new AppError('POLICY_TYPE_UNKNOWN', message)
