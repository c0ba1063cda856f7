/** Removes sudo's password prompts from stderr and counts them. */

/**
 * sudo with `-S` prints its prompt on stderr each time it wants a password. The prompt is a text that no command
 * prints, so it can be removed. A second one means that sudo refused the first password, whatever the language of sudo.
 */
export class PromptFilter {
  readonly #prompt: string
  #held = ''
  #count = 0

  constructor(prompt: string) {
    this.#prompt = prompt
  }

  /** The text without prompts; a possible beginning of one waits for the next piece. */
  filter(text: string): string {
    const pieces = (this.#held + text).split(this.#prompt)
    this.#count += pieces.length - 1
    const last = pieces.at(-1) ?? ''
    let held = Math.min(last.length, this.#prompt.length - 1)
    while (held > 0 && !this.#prompt.startsWith(last.slice(-held))) held -= 1
    this.#held = held === 0 ? '' : last.slice(-held)
    const all = pieces.join('')
    return held === 0 ? all : all.slice(0, -held)
  }

  /** The text still held back at the end of the input. */
  end(): string {
    const rest = this.#held
    this.#held = ''
    return rest
  }

  /** Whether a sudo that failed had refused the password. */
  wasRefused(stderr: string): boolean {
    return this.#count > 1 || (this.#count === 1 && /^sudo: \d+ incorrect password attempt/m.test(stderr))
  }
}
