/** Writes standard error to the log, for code that does not use the log (`log.redirect_stderr`). */
import { Writable } from 'node:stream'
import type { Log } from '../../lib/log/index.ts'

const MAX_LINE_LENGTH = 8192

/**
 * From now on, each line that JavaScript of this process writes to standard error is a message at WARNING, and so is each
 * warning of Node.js. The log must have its own stream already.
 */
export function logStandardError(log: Log): void {
  let rest = ''
  const lines = new Writable({
    decodeStrings: false,
    write(chunk: Buffer | string, _encoding, done) {
      const parts = (rest + String(chunk)).split('\n')
      rest = parts.pop() ?? ''
      if (rest.length > MAX_LINE_LENGTH) {
        parts.push(rest)
        rest = ''
      }
      for (const line of parts) log.warning('stderr.line', line)
      done()
    },
  })
  Object.defineProperty(process, 'stderr', { configurable: true, enumerable: true, get: () => lines })
  process.removeAllListeners('warning')
  process.on('warning', (warning) => log.warning('process.warning', 'Warning of Node.js', { error: warning }))
}
