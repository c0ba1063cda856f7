/** Errors of actions and policies. */
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

// Policies

export const policyTypeUnknown = (message: string): AppError => new AppError('POLICY_TYPE_UNKNOWN', message)
