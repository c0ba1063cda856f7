/** Errors of executions and inquiries. */
import { shown } from '../../lib/text/index.ts'
import { AppError } from './app-error.ts'

// Executions

export const noExecutions = (): AppError => new AppError('NO_EXECUTIONS', 'No executions found in the database')

export const transitionRefused = (message: string): AppError => new AppError('TRANSITION_REFUSED', message)

export const executionUpdateRefused = (message: string): AppError => new AppError('EXECUTION_UPDATE_REFUSED', message)

// Inquiries (contract 08, 8.15)

export const notAnInquiry = (id: string): AppError =>
  new AppError('NOT_AN_INQUIRY', `Action execution "${id}" is not an inquiry.`)

export const inquiryTimedOut = (id: string): AppError =>
  new AppError('INQUIRY_TIMED_OUT', `Inquiry "${id}" timed out and cannot be responded to.`)

export const inquiryAnswered = (id: string): AppError =>
  new AppError('INQUIRY_ANSWERED', `Inquiry "${id}" has already been responded to.`)

export const inquiryCanceled = (id: string): AppError =>
  new AppError(
    'INQUIRY_CANCELED',
    `Inquiry "${id}" has been canceled and cannot be responded to: the workflow that asked has ended.`,
  )

/** The inquiry has not asked yet, or has failed. */
export const inquiryNotPending = (id: string, status: string): AppError =>
  new AppError(
    'INQUIRY_NOT_PENDING',
    `Inquiry "${id}" is ${status} and cannot be responded to; only pending inquiries take a response.`,
  )

/** @param path in the response */
export const inquiryResponseInvalid = (id: string, problem: string, path: readonly string[]): AppError =>
  new AppError('INQUIRY_RESPONSE_INVALID', `Response for inquiry "${id}" did not pass schema validation. ${problem}`, {
    details: { path: ['response', ...path] },
  })

export const inquiryDenied = (user: string, id: string): AppError =>
  new AppError('PERMISSION_DENIED', `User "${shown(user)}" does not have permission to respond to inquiry "${id}".`, {
    details: { permission: 'inquiry_respond', resource: `inquiry:${id}` },
  })
