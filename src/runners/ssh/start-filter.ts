/** Takes the line out of stderr by which a program on another machine tells which process it is. */
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

  /** The text without the line; what may be its start waits for the next piece. */
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

  /** What was held back at the end of the input. */
  end(): string {
    const rest = this.#held
    this.#held = ''
    return rest.startsWith(this.#mark) ? '' : rest
  }
}
