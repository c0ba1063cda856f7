import { Writable } from 'node:stream'

/** Keeps what is written to it: the stream of a log that a test reads, or wants to be silent. */
export class TextSink extends Writable {
  text = ''

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}
