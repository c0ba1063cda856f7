/** Webhooks as the API lists them: triggers, of which several may have one address. */
import type { TriggerRecord, WebhookParameters } from '../../api/records.ts'

export type WebhookTrigger = Omit<TriggerRecord, 'parameters'> & { parameters: WebhookParameters }

export interface Hook {
  /** What follows `webhooks/` in the address. */
  name: string
  /** Oldest first. */
  triggers: readonly [WebhookTrigger, ...WebhookTrigger[]]
}

/** Takes any trigger by its name; always there, and in no list. */
export const GENERIC_HOOK = 'svc'

/** Slashes around the text of a rule do not count. */
export function hookOf(url: string): string {
  return url.replace(/^\/+/, '').replace(/\/+$/, '')
}

/** In the order of names. */
export function groupHooks(triggers: readonly WebhookTrigger[]): Hook[] {
  const hooks = new Map<string, [WebhookTrigger, ...WebhookTrigger[]]>()
  for (const trigger of triggers) {
    const name = hookOf(trigger.parameters.url)
    const others = hooks.get(name)
    if (others === undefined) hooks.set(name, [trigger])
    else others.push(trigger)
  }
  return [...hooks]
    .map(([name, ofHook]) => ({ name, triggers: ofHook }))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}

/** Those whose name has every word of a search, whatever the case of its letters. */
export function findHooks(hooks: readonly Hook[], search: string): readonly Hook[] {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  if (words.length === 0) return hooks
  return hooks.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)))
}

/** Below the API. A slash in a name is one in the address, too. */
export function pathOfHook(name: string): string {
  return `webhooks/${name.split('/').map(encodeURIComponent).join('/')}`
}
