/** Reads one pipe of a child: emits decoded pieces as they arrive and keeps a bounded head for the result. */
import type { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { truncateUtf8, Utf8Decoder } from './utf8-decoder.ts'

/** Time for a process left behind to flush piped output; after that the pipe is closed. */
const LINGER_MS = 100
/** Upper bound of the bytes in a pipe when its writer has ended: the largest pipe of an unprivileged user. */
const MAX_PIPE_BYTES = 1024 * 1024
/** Pieces are joined in blocks, so that output written byte by byte does not become a million strings. */
const PIECES_PER_BLOCK = 1024

export interface ChildOutputOptions {
  /** Emits a piece; a returned promise pauses the pipe until it resolves. */
  emit(text: string): Promise<void> | undefined
  /** UTF-8 bytes of text to keep. */
  maxBytes: number
  /** Filters the text first; it may hold some of it back. */
  filter?: { filter(text: string): string; end(): string }
}

export class ChildOutput {
  readonly #stream: Readable
  readonly #options: ChildOutputOptions
  readonly #decoder = new Utf8Decoder()
  #pieces: string[] = []
  readonly #blocks: string[] = []
  #keptBytes = 0
  #isTruncated = false
  #bytesRead = 0
  #isEnded = false
  #held: Promise<void> | undefined
  #failure: { error: unknown } | undefined
  #onEnd: (() => void) | undefined

  constructor(stream: Readable, options: ChildOutputOptions) {
    this.#stream = stream
    this.#options = options
    // `end` fires when all data has been read, `close` alone when the stream was destroyed.
    stream.on('end', this.#end)
    stream.on('close', this.#end)
    stream.on('data', this.#receive)
    // A broken pipe ends the output; `close` follows.
    stream.on('error', () => undefined)
  }

  /** The kept text, at most `maxBytes`, cut between characters. Complete after `drain`. */
  get text(): string {
    return [...this.#blocks, ...this.#pieces].join('')
  }

  get isTruncated(): boolean {
    return this.#isTruncated
  }

  /**
   * Call when the child has ended: resolves when all its output has been emitted. Closes the pipe even if a process
   * left behind holds the other end (docs/dependencies.md, processes). Rejects with the error of `emit`.
   */
  async drain(): Promise<void> {
    if (!this.#isEnded) await this.#waitForEnd()
    this.#stream.destroy()
    if (this.#held !== undefined) await this.#held
    const { filter } = this.#options
    const last = this.#decoder.end()
    const rest = filter === undefined ? last : filter.filter(last) + filter.end()
    if (rest !== '') await this.#give(rest)
    if (this.#failure !== undefined) throw this.#failure.error
  }

  #waitForEnd(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#emptyPipe().then(resolve, reject)
      }, LINGER_MS)
      this.#onEnd = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  readonly #end = (): void => {
    this.#isEnded = true
    this.#onEnd?.()
  }

  /** Until the pipe is empty, or more has come out than it can have held when its writer ended. */
  async #emptyPipe(): Promise<void> {
    const end = this.#bytesRead + MAX_PIPE_BYTES
    while (!this.#isEnded && this.#bytesRead < end) {
      const before = this.#bytesRead
      if (this.#held !== undefined) await this.#held
      // Two turns, so that the event loop has polled the pipe at least once.
      await setImmediate()
      await setImmediate()
      if (this.#bytesRead === before && this.#held === undefined) return
    }
  }

  readonly #receive = (bytes: Buffer): void => {
    this.#bytesRead += bytes.length
    const { filter } = this.#options
    const decoded = this.#decoder.decode(bytes)
    const text = filter === undefined ? decoded : filter.filter(decoded)
    if (text === '') return
    const written = this.#give(text)
    if (written === undefined) return
    this.#stream.pause()
    this.#held = written.then(() => {
      this.#held = undefined
      this.#stream.resume()
    })
  }

  /** Keeps and emits. When `emit` fails, the pipe is still emptied, so that the child can exit by itself. */
  #give(text: string): Promise<void> | undefined {
    this.#keep(text)
    if (this.#failure !== undefined) return undefined
    try {
      return this.#options.emit(text)?.catch(this.#fail)
    } catch (error) {
      this.#fail(error)
      return undefined
    }
  }

  readonly #fail = (error: unknown): void => {
    this.#failure ??= { error }
  }

  #keep(text: string): void {
    if (this.#isTruncated) return
    const room = this.#options.maxBytes - this.#keptBytes
    const bytes = Buffer.byteLength(text)
    if (bytes <= room) {
      this.#pieces.push(text)
      this.#keptBytes += bytes
    } else {
      this.#pieces.push(truncateUtf8(text, room))
      this.#isTruncated = true
    }
    if (this.#pieces.length >= PIECES_PER_BLOCK) {
      this.#blocks.push(this.#pieces.join(''))
      this.#pieces = []
    }
  }
}
