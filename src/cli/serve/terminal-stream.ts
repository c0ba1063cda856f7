/**
 * A terminal that never holds up the server. Node waits for a terminal with the whole process, so one that was stopped,
 * by Ctrl-S or to select text, would stop the server.
 */
import { write } from 'node:fs'
import { Writable } from 'node:stream'

/** Another program may have made the terminal one that has to be asked again. */
const AGAIN_MS = 20

/** @param descriptor of the terminal; it stays open */
export function openTerminalStream(descriptor: number): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      const writeFrom = (offset: number): void =>
        write(descriptor, chunk, offset, (error, written) => {
          if (error?.code === 'EAGAIN') setTimeout(writeFrom, AGAIN_MS, offset)
          else if (error !== null) done(error)
          else if (offset + written < chunk.length) writeFrom(offset + written)
          else done()
        })
      writeFrom(0)
    },
  })
}
