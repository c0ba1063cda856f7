import type { RE2JS } from 're2js'
import { YaqlObject } from './values.ts'

/** A compiled regular expression. */
export class RegexValue extends YaqlObject {
  readonly typeName = 're.Pattern'
  readonly source: string
  readonly compiled: RE2JS
  /** As Python writes them: `re.IGNORECASE|re.DOTALL`. */
  readonly flags: string

  constructor(source: string, compiled: RE2JS, flags: string) {
    super()
    this.source = source
    this.compiled = compiled
    this.flags = flags
  }
}
