/** Errors of traces, triggers, rules, timers and webhooks. */
import { adviceOnName } from '../compat/index.ts'
import { shown } from '../../lib/text/index.ts'
import { AppError } from './app-error.ts'

// Traces

export const traceUnknown = (id: string): AppError =>
  new AppError('TRACE_UNKNOWN', `Unable to find Trace with id="${shown(id)}"`)

// Triggers

/** @param path of the field of the body that has the reference */
export const triggerTypeUnknown = (ref: string, path: readonly string[] = ['type']): AppError =>
  new AppError(
    'TRIGGER_TYPE_UNKNOWN',
    `Trigger type "${shown(ref)}" does not exist.${adviceOnName('triggerType', ref)}`,
    { details: { path } },
  )

/** The type is part of svc. */
export const triggerTypeFixed = (ref: string): AppError =>
  new AppError(
    'TRIGGER_TYPE_FIXED',
    `Trigger type "${shown(ref)}" belongs to the pack "core", whose types cannot be created, changed or deleted; use another pack.`,
  )

export const triggerInUse = (message: string): AppError => new AppError('TRIGGER_IN_USE', message)

/** The trigger of a stored instance no longer exists, so the instance cannot be dispatched again. */
export const triggerGone = (ref: string): AppError =>
  new AppError('TRIGGER_GONE', `Trigger "${shown(ref)}" no longer exists, so its trigger instance cannot be re-sent.`)

// Rules

/** @param path keys of the criterion, below `criteria` of the rule */
export const criteriaInvalid = (message: string, path: readonly string[] = []): AppError =>
  new AppError('CRITERIA_INVALID', message, { details: { path: ['criteria', ...path] } })

export const ruleActionDenied = (user: string, ref: string): AppError =>
  new AppError(
    'PERMISSION_DENIED',
    `User "${shown(user)}" doesn't have required (action_execute) permission to use action ${shown(ref)}`,
    { details: { permission: 'action_execute', action: shown(ref), path: ['action', 'ref'] } },
  )

/** @param type an internal one: its payloads tell about records. @param uid to grant the permission on */
export const ruleTriggerDenied = (user: string, type: string, uid: string): AppError =>
  new AppError(
    'PERMISSION_DENIED',
    `User "${shown(user)}" doesn't have required permission (trigger_view) to use trigger ${type}: its payloads tell about records of all users. The permission is granted on resource "${uid}"`,
    { details: { permission: 'trigger_view', resource: uid, path: ['trigger', 'type'] } },
  )

/** @param hook address of the webhook, without slashes around it */
export const ruleWebhookDenied = (user: string, type: string, hook: string): AppError =>
  new AppError(
    'PERMISSION_DENIED',
    `User "${shown(user)}" doesn't have required permission (webhook_create) to use trigger ${type} with the url "${shown(hook)}"`,
    { details: { permission: 'webhook_create', resource: shown(`webhook:${hook}`), path: ['trigger'] } },
  )

// Timers

export const timerTypeUnknown = (type: string, known: readonly string[]): AppError =>
  new AppError(
    'TIMER_TYPE_UNKNOWN',
    `Timer type "${shown(type)}" does not exist; use ${known.join(', ')}.${adviceOnName('triggerType', type)}`,
  )

// Webhooks

export const webhookNotRegistered = (hook: string): AppError =>
  new AppError(
    'WEBHOOK_NOT_REGISTERED',
    `Webhook ${shown(hook)} not registered with svc${hook === 'st2' ? `.${adviceOnName('hook', hook)}` : ''}`,
  )

/** @param headers that carry the signature of this webhook */
export const signatureMissing = (headers: readonly string[]): AppError =>
  new AppError(
    'SIGNATURE_MISSING',
    `Unauthorized - This webhook requires signed requests; ${headers.join(', or ')} is missing.`,
  )

export const signatureMalformed = (header: string, why: string): AppError =>
  new AppError('SIGNATURE_MALFORMED', `Unauthorized - The header ${header} ${why}.`)

export const signatureExpired = (header: string, toleranceSeconds: number): AppError =>
  new AppError(
    'SIGNATURE_EXPIRED',
    `Unauthorized - The time in the header ${header} differs from the server's time by more than ${toleranceSeconds} s.`,
  )

/** Does not say which part is wrong. */
export const signatureInvalid = (): AppError =>
  new AppError('SIGNATURE_INVALID', 'Unauthorized - The signature is not valid.')

/** The template of the secret cannot be rendered. The sender cannot fix that and may send again later. */
export const signatureUncheckable = (cause: unknown): AppError =>
  new AppError(
    'SIGNATURE_UNCHECKABLE',
    'The server could not read the secret of this webhook; send again later. The log of the server says why.',
    { cause },
  )

/** The certificate of a signature cannot be fetched. */
export const signatureCertificateMissing = (cause: unknown): AppError =>
  new AppError(
    'SIGNATURE_UNCHECKABLE',
    'The server could not get the certificate of the signature; send again later. The log of the server says why.',
    { cause },
  )

export const snsMessageMalformed = (why: string): AppError =>
  new AppError('SIGNATURE_MALFORMED', `Unauthorized - The message of Amazon SNS ${why}.`)

export const snsMessageRefused = (why: string): AppError =>
  new AppError('SIGNATURE_INVALID', `Unauthorized - The message of Amazon SNS ${why}.`)

export const snsMessageExpired = (toleranceSeconds: number): AppError =>
  new AppError(
    'SIGNATURE_EXPIRED',
    `Unauthorized - The Timestamp of the message of Amazon SNS differs from the server's time by more than ${toleranceSeconds} s.`,
  )

/** Amazon SNS sends the message again. */
export const subscriptionUnconfirmed = (topic: string, cause: unknown): AppError =>
  new AppError(
    'SUBSCRIPTION_UNCONFIRMED',
    `The server could not confirm the subscription to "${shown(topic)}"; send again later. The log of the server says why.`,
    { cause },
  )
