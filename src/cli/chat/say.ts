/** Says something in a chat, however often it has to be tried. */
import { setTimeout as delay } from 'node:timers/promises'
import { ChatFailure, type ChatAdapter } from './adapter.ts'
import type { Attachment } from './attachments.ts'

export interface Saying {
  channel: string
  /** Undefined: into the channel itself. */
  thread?: string | undefined
  /** Chat user who alone hears it, in place of the channel. */
  privateTo?: string | undefined
  /** Chat user who is called. */
  user?: string | undefined
  text: string
  attachments?: readonly Attachment[]
  /** Equal for what is said again after a crash. */
  key: string
  /** A process before this one may have said it. Default: false. */
  mayHaveBeenSent?: boolean
  /** Milliseconds since the epoch after which it is dropped. Default: never. */
  until?: number
}

/** Resolves when it is posted, refused for good or dropped. @throws errors that are none of the chat, and the abort */
export type Say = (saying: Saying) => Promise<void>

const FIRST_RETRY_MS = 500
const MAX_RETRY_MS = 30_000

export function createSay({
  adapter,
  log,
  signal,
  now,
}: {
  adapter: ChatAdapter
  readonly log: (text: string) => void
  signal: AbortSignal
  readonly now: () => number
}): Say {
  return async ({ channel, thread, privateTo, user, text, attachments = [], key, until = Infinity, ...more }) => {
    let mayHaveBeenSent = more.mayHaveBeenSent ?? false
    for (let retry = FIRST_RETRY_MS; ; retry = Math.min(MAX_RETRY_MS, retry * 2)) {
      try {
        const place =
          privateTo === undefined ? { channel, thread } : { channel: await adapter.privateChannel(privateTo, signal) }
        const post = { ...place, user, text: fitted(text, adapter.maxChars), attachments, key, mayHaveBeenSent }
        return await adapter.post(post, signal)
      } catch (error) {
        if (signal.aborted || !(error instanceof ChatFailure)) throw error
        log(`${adapter.name}: ${error.message}`)
        if (error.isFinal) return
        if (now() + retry > until) {
          log(`${adapter.name}: what was to be said in ${privateTo ?? channel} is dropped; it is too old by now`)
          return
        }
        mayHaveBeenSent = true
        await delay(retry, undefined, { signal })
      }
    }
  }
}

/** At a character boundary, with a block of code that ends. */
function fitted(text: string, most: number): string {
  if (text.length <= most) return text
  const cut = `${text.slice(0, most - 8).replace(/[\uD800-\uDBFF]$/, '')}…`
  return (cut.match(/^```/gm) ?? []).length % 2 === 1 ? `${cut}\n\`\`\`` : cut
}
