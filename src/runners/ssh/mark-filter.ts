/** Removes the line with a mark of svc from the output of a remote shell, and reports it. */

/** Longer than any line of that kind. */
const MAX_LINE = 200

export class MarkFilter {
  readonly #mark: string
  readonly #onMark: (rest: string) => void
  #held = ''
  #isDone = false

  /** @param onMark called once, with the text between the mark and the end of its line */
  constructor(mark: string, onMark: (rest: string) => void) {
    this.#mark = mark
    this.#onMark = onMark
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
    this.#onMark(all.slice(at + this.#mark.length, end === -1 ? undefined : end).trim())
    return all.slice(0, at) + (end === -1 ? '' : all.slice(end + 1))
  }

  /** The text still held back at the end of the input. */
  end(): string {
    const rest = this.#held
    this.#held = ''
    return rest.startsWith(this.#mark) ? '' : rest
  }
}

interface TextFilter {
  filter(text: string): string
  end(): string
}

/** Filters in a row: each gets what the one before has let pass. */
export function chain(filters: readonly TextFilter[]): TextFilter {
  return {
    filter: (text) => filters.reduce((rest, one) => one.filter(rest), text),
    end: () => filters.reduce((rest, one) => one.filter(rest) + one.end(), ''),
  }
}
