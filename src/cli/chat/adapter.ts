/** What the bot needs of a chat system. */
import type { Attachment } from './attachments.ts'

/** What somebody has written. */
export interface ChatMessage {
  /** The same when the chat system delivers it again. */
  id: string
  channel: string
  /** Message below which the answers go; undefined: they go into the channel itself. */
  thread?: string | undefined
  /** Id of the user in the chat system. */
  user: string
  text: string
  /** It is said to the bot, so that it needs no prefix. */
  isCommand?: boolean
  /** When, in milliseconds since the epoch, as the chat system says. */
  at: number
}

/** Something to say. */
export interface ChatPost {
  channel: string
  /** Message that it replies to. */
  thread?: string | undefined
  /** Markdown with blocks between lines of three backquotes. */
  text: string
  attachments: readonly Attachment[]
  /** Chat user who is called; undefined: nobody is. */
  user?: string | undefined
  /** Equal for the same post: one that is sent again with the same key appears once. */
  key: string
  /** It may be there already: an attempt to send it had no answer, or a process before this one was killed. */
  mayHaveBeenSent: boolean
}

/** Up to where everything has been dealt with; kept when the bot ends. */
export interface ChatPosition {
  read(): string | undefined
  write(position: string): Promise<void>
}

export interface ChatAdapter {
  /** `matrix`, `mattermost`, `slack` */
  readonly name: string
  /** UTF-16 units of one post. */
  readonly maxChars: number
  /**
   * Reads messages until the signal is aborted, and connects again whenever the connection is lost.
   *
   * @param handle resolves when the message is dealt with; only then it counts as read. StateFailure: it is to come again
   */
  run(handle: (message: ChatMessage) => Promise<void>, signal: AbortSignal): Promise<void>
  /** Channel that the bot has with one user alone; made if need be. @throws ChatFailure */
  privateChannel(user: string, signal: AbortSignal): Promise<string>
  /** Waits as long as the chat system says. @throws ChatFailure */
  post(post: ChatPost, signal: AbortSignal): Promise<void>
}

/** The chat system refuses, or cannot be reached. */
export class ChatFailure extends Error {
  /** Another attempt would fail as well. */
  readonly isFinal: boolean
  constructor(message: string, isFinal: boolean) {
    super(message)
    this.isFinal = isFinal
  }
}
