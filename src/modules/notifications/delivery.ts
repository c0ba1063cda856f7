/** One attempt to send one notification: settings with their secrets, the message, the channel. */
import { findTemplates, createRenderer } from '../../core/template-values.ts'
import { watchDecryption } from '../../core/parameter-scope.ts'
import type { TemplateReader } from '../../core/template-reader.ts'
import type { Clock } from '../../core/clock.ts'
import { createSecretValues } from '../../lib/secrets/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { TemplateScope } from '../../lib/template/index.ts'
import type { HttpPost, RunHelper } from '../../runners/index.ts'
import { SendFailure, shortened, type Settings } from './channels/index.ts'
import { finishSettings, type Destination } from './definition.ts'
import { noticeOf } from './message.ts'
import type { Notification } from './types.ts'

/** A whole attempt, name resolution and answer included. */
const ATTEMPT_MS = 15_000
/** Shorter parts of an address are words, not secrets. */
const MIN_SECRET_PART = 8

export type Outcome =
  | { sent: true; message: string }
  | { sent: false; message: string; isFinal: boolean; retryAfterSeconds: number | undefined }

/** Never rejects. Texts of the outcome contain no secret of the destination. */
export type Deliver = (notification: Notification, destination: Destination, stopping?: AbortSignal) => Promise<Outcome>

export function createDelivery(deps: {
  readonly templates: (reader: TemplateReader) => TemplateScope
  readonly post: HttpPost
  readonly runHelper: RunHelper
  readonly webUrl: () => string
  clock: Pick<Clock, 'now'>
  log: Log
  systemUser: string
}): Deliver {
  const { clock, log } = deps

  /** @throws SendFailure */
  function settingsOf({ channel, settings }: Destination): { settings: Settings; secrets: unknown[] } {
    const decrypted: unknown[] = []
    const found = findTemplates(settings)
    const rendered: Record<string, unknown> = { ...settings }
    if (found !== undefined) {
      const scope = watchDecryption(deps.templates({ user: deps.systemUser }), (plain) => decrypted.push(plain))
      const variables = new Map<string, unknown>(Object.entries(scope.variables))
      const fail = (name: string, why: string): Error =>
        new SendFailure(`the setting "${name}" of the destination cannot be rendered: ${why}`)
      const renderer = createRenderer(found, { filters: scope.filters, fail })
      for (const [name, value] of Object.entries(settings)) rendered[name] = renderer.render(name, value, variables)
    }
    const finished = finishSettings(channel, rendered)
    if ('problem' in finished) throw new SendFailure(finished.problem)
    const kept = [...channel.secrets, 'webhook_url'].map((name) => finished.settings[name])
    const secrets = [...kept, rendered['url'], ...decrypted]
    return { settings: finished.settings, secrets: [...secrets, ...partsOf(secrets)] }
  }

  return async (notification, destination, stopping) => {
    let mask = (text: string): string => text
    const timeout = AbortSignal.timeout(ATTEMPT_MS)
    const signal = stopping === undefined ? timeout : AbortSignal.any([timeout, stopping])
    try {
      const { settings, secrets } = settingsOf(destination)
      const values = createSecretValues(secrets)
      mask = (text) => values?.maskText(text) ?? text
      const notice = noticeOf(notification, {
        webUrl: deps.webUrl(),
        template: notification.content.message ?? destination.message,
        warn: (error) =>
          log.warning('notification.template_failed', 'Could not render a message; svc sends its own text', {
            notification_id: notification.id,
            destination: destination.name,
            error,
          }),
      })
      const masked = values === undefined ? notice : (values.maskValue(notice) as typeof notice) // the same form
      const answer = await destination.channel.send({ ...masked, id: notice.id, link: notice.link }, settings, {
        post: deps.post,
        run: (program) => deps.runHelper({ ...program, signal }),
        now: () => clock.now() / 1_000_000,
        signal,
      })
      return { sent: true, message: mask(shortened(answer)) }
    } catch (error) {
      const isFailure = error instanceof SendFailure
      if (!isFailure) {
        log.error('notification.attempt_failed', 'An attempt to send a notification failed unexpectedly', {
          notification_id: notification.id,
          destination: destination.name,
          error: mask(error instanceof Error ? error.message : String(error)),
        })
      }
      return {
        sent: false,
        message: mask(shortened(error instanceof Error ? error.message : String(error))),
        isFinal: isFailure && error.isFinal,
        retryAfterSeconds: isFailure ? error.retryAfterSeconds : undefined,
      }
    }
  }
}

/** Parts of addresses that are secrets: errors name them without the rest. */
function partsOf(secrets: readonly unknown[]): string[] {
  return secrets.flatMap((secret) => {
    if (typeof secret !== 'string' || !secret.includes('://')) return []
    return secret.split(/[/?&=@:#]/).filter((part) => part.length >= MIN_SECRET_PART && !part.includes('.'))
  })
}
