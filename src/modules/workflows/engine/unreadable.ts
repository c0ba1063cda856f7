/** Why a run cannot be read, and never will be: its secrets cannot be decrypted, or a part of it is gone. */
export class Unreadable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Unreadable'
  }
}
