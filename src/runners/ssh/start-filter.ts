/** Removes the line from stderr in which a remote program reports its pid. */
import type { RemoteProcess } from './remote-program.ts'

/** Longer than any line of that kind. */
const MAX_LINE = 200

export class StartFilter {
  readonly #mark: string
  readonly #onStart: (process: RemoteProcess) => void
  #held = ''
  #isDone = false

  constructor(mark: string, onStart: (process: RemoteProcess) => void) {
    this.#mark = mark
    this.#onStart = onStart
  }

  /** The text without the line; a possible beginning of it waits for the next piece. */
  filter(text: string): string {
    if (this.#isDone) return text
    const all = this.#held + text
    const at = all.indexOf(this.#mark)
    if (at === -1) {
      let held = Math.min(all.length, this.#mark.length - 1)
      while (held > 0 && !this.#mark.startsWith(all.slice(-held))) held -= 1
      this.#held = all.slice(all.length - held)
      return all.slice(0, all.length - held)
    }
    const end = all.indexOf('\n', at)
    if (end === -1 && all.length - at < MAX_LINE) {
      this.#held = all.slice(at)
      return all.slice(0, at)
    }
    this.#isDone = true
    this.#held = ''
    const [, pid = '', startTime = '0'] = /^ (\d{1,10}) (\d{1,20})$/.exec(all.slice(at + this.#mark.length, end)) ?? []
    if (pid !== '') this.#onStart({ pid: Number(pid), startTime })
    return all.slice(0, at) + (end === -1 ? '' : all.slice(end + 1))
  }

  /** The text still held back at the end of the input. */
  end(): string {
    const rest = this.#held
    this.#held = ''
    return rest.startsWith(this.#mark) ? '' : rest
  }
}
