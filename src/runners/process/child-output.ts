/** Reads one pipe of a child: emits decoded pieces as they arrive and keeps a bounded head for the result. */
import type { Readable } from 'node:stream'
import { readRest } from './pipe-rest.ts'
import { truncateUtf8, Utf8Decoder } from './utf8-decoder.ts'

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
  #readAt = 0
  #isEnded = false
  #held: Promise<void> | undefined
  #failure: { error: unknown } | undefined
  readonly #atEnd = Promise.withResolvers<void>()

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

  /** Whether nobody holds the other end of the pipe any more, and everything has been read. */
  get isEnded(): boolean {
    return this.#isEnded
  }

  /** Resolves at the end of the pipe, which another process may hold open for ever. */
  get ended(): Promise<void> {
    return this.#atEnd.promise
  }

  get bytesRead(): number {
    return this.#bytesRead
  }

  /** While `emit` holds the pipe back. */
  get held(): Promise<void> | undefined {
    return this.#held
  }

  /** When data last arrived, by `performance.now`; now while `emit` holds the pipe back. */
  get readAt(): number {
    return this.#held === undefined ? this.#readAt : performance.now()
  }

  /**
   * Call when the child has ended: resolves when all its output has been emitted. If a process left behind holds the
   * other end, the pipe stays open, and later data is discarded. Rejects with the error of `emit`.
   */
  async drain(): Promise<void> {
    await readRest(this)
    this.#stream.off('data', this.#receive)
    if (this.#held !== undefined) await this.#held
    if (!this.#isEnded) this.#stream.resume()
    const { filter } = this.#options
    const last = this.#decoder.end()
    const rest = filter === undefined ? last : filter.filter(last) + filter.end()
    if (rest !== '') await this.#give(rest)
    if (this.#failure !== undefined) throw this.#failure.error
  }

  readonly #end = (): void => {
    this.#isEnded = true
    this.#atEnd.resolve()
  }

  readonly #receive = (bytes: Buffer): void => {
    this.#bytesRead += bytes.length
    this.#readAt = performance.now()
    const { filter } = this.#options
    const decoded = this.#decoder.decode(bytes)
    const text = filter === undefined ? decoded : filter.filter(decoded)
    if (text === '') return
    const written = this.#give(text)
    if (written === undefined) return
    this.#stream.pause()
    this.#held = written.then(() => {
      this.#held = undefined
      this.#readAt = performance.now()
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
